import msgspec

from devlet.runtime.cdi.spec import ContainerEdits, Device, DeviceNode, IntelRdt, Spec


def test_edits_are_empty_only_without_any_field() -> None:
    assert not ContainerEdits()
    assert (
        ContainerEdits(intel_rdt=IntelRdt()) and ContainerEdits(additional_gids=(0,)) and ContainerEdits(env=("A=1",))
    )


def test_edits_are_concatenated_and_the_later_intel_rdt_counts() -> None:
    first = ContainerEdits(env=("A=1",), intel_rdt=IntelRdt("x"), additional_gids=(1,))
    later = ContainerEdits(env=("B=1",), device_nodes=(DeviceNode("/dev/null"),), intel_rdt=IntelRdt("y"))
    assert first + later == ContainerEdits(
        env=("A=1", "B=1"),
        device_nodes=(DeviceNode("/dev/null"),),
        intel_rdt=IntelRdt("y"),
        additional_gids=(1,),
    )
    assert (first + ContainerEdits()) == first == (ContainerEdits() + first)


def test_fields_have_the_names_of_the_format() -> None:
    edits = ContainerEdits(intel_rdt=IntelRdt("a", "b", "c", ("d",), True, True, True), additional_gids=(1,))
    assert msgspec.to_builtins(edits) == {
        "intelRdt": {
            "closID": "a",
            "l3CacheSchema": "b",
            "memBwSchema": "c",
            "schemata": ("d",),
            "enableMonitoring": True,
            "enableCMT": True,
            "enableMBM": True,
        },
        "additionalGids": (1,),
    }


def test_all_edits_are_listed_with_their_paths() -> None:
    spec = Spec("0.3.0", "v/c", (Device("a", ContainerEdits(env=("A=1",))), Device("b", ContainerEdits())))
    assert [path for path, _ in spec.edits()] == [
        "containerEdits",
        "devices[0].containerEdits",
        "devices[1].containerEdits",
    ]
