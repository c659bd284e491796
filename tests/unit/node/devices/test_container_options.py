"""What a container gets with its devices."""

from itertools import permutations

import pytest

from devlet.node.devices.container_options import ContainerOptions, merge
from devlet.objects.identifiers import ResourceName
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.plugins.devices import Grant

GPU, NIC, TPU = (ResourceName(f"example.com/{name}") for name in ("gpu", "nic", "tpu"))


def test_a_container_without_grants_has_no_options() -> None:
    assert merge([]) is None


@pytest.mark.spec("DP-8.52")
def test_an_empty_grant_gives_empty_options() -> None:
    assert merge([(GPU, Grant())]) == ContainerOptions()


def test_everything_a_plugin_grants_is_in_the_options() -> None:
    mount, node = Mount("/usr/lib/gpu", "/opt/gpu", True), DeviceNode("/dev/gpu0", "/dev/gpu3", "rw")
    grant = Grant(
        env={"VISIBLE": "0", "ARCH": "x"},
        mounts=(mount,),
        devices=(node,),
        annotations={"note": "n"},
        cdi_devices=("example.com/gpu=0",),
    )
    assert merge([(GPU, grant)]) == ContainerOptions(
        env=(("ARCH", "x"), ("VISIBLE", "0")),
        mounts=(mount,),
        devices=(node,),
        annotations=(("note", "n"),),
        cdi_devices=("example.com/gpu=0",),
    )


@pytest.mark.spec("DP-8.52")
def test_cdi_devices_of_several_resources_are_listed_once() -> None:
    grants = [(NIC, Grant(cdi_devices=("v/c=2", "v/c=1"))), (GPU, Grant(cdi_devices=("v/c=1", "v/c=3", "v/c=1")))]
    options = merge(grants)
    assert options is not None
    assert options.cdi_devices == ("v/c=1", "v/c=3", "v/c=2")


def test_equal_values_of_two_plugins_appear_once_and_are_not_a_conflict() -> None:
    grant = Grant(
        env={"A": "1"}, mounts=(Mount("/m", "/h"),), devices=(DeviceNode("/d", "/h", "rw"),), annotations={"k": "v"}
    )
    assert merge([(GPU, grant), (NIC, grant)]) == merge([(GPU, grant)])


@pytest.mark.spec("DP-9.23")
@pytest.mark.parametrize(
    ("first", "second", "kind", "key"),
    [
        (Grant(env={"A": "1"}), Grant(env={"A": "2"}), "env", "A"),
        (Grant(annotations={"k": "1"}), Grant(annotations={"k": "2"}), "annotation", "k"),
        (Grant(mounts=(Mount("/m", "/x"),)), Grant(mounts=(Mount("/m", "/y"),)), "mount", "/m"),
        (Grant(mounts=(Mount("/m", "/x", True),)), Grant(mounts=(Mount("/m", "/x", False),)), "mount", "/m"),
        (Grant(devices=(DeviceNode("/d", "/x"),)), Grant(devices=(DeviceNode("/d", "/y"),)), "device", "/d"),
        (Grant(devices=(DeviceNode("/d", "/x", "r"),)), Grant(devices=(DeviceNode("/d", "/x", "rw"),)), "device", "/d"),
    ],
)
def test_the_first_of_two_different_values_counts_and_the_conflict_is_reported(
    first: Grant, second: Grant, kind: str, key: str
) -> None:
    options, alone = merge([(NIC, second), (GPU, first)]), merge([(GPU, first)])
    assert options is not None and alone is not None
    assert options.conflicts == (f"{kind} {key} of {NIC} differs from that of {GPU}, which is kept",)
    assert (options.env, options.mounts, options.devices, options.annotations) == (
        alone.env,
        alone.mounts,
        alone.devices,
        alone.annotations,
    )


def test_a_plugin_that_contradicts_itself_is_a_conflict() -> None:
    options = merge([(GPU, Grant(mounts=(Mount("/m", "/x"), Mount("/m", "/y"))))])
    assert options is not None
    assert options.mounts == (Mount("/m", "/x"),)
    assert options.conflicts == (f"mount /m of {GPU} differs from an earlier one of its own, which is kept",)


def test_conflicts_do_not_show_values() -> None:
    options = merge([(GPU, Grant(env={"TOKEN": "hunter2"})), (NIC, Grant(env={"TOKEN": "swordfish"}))])
    assert options is not None
    assert "hunter2" not in options.conflicts[0] and "swordfish" not in options.conflicts[0]


@pytest.mark.spec("DP-9.23")
def test_the_outcome_does_not_depend_on_the_sequence_of_grants() -> None:
    grants = [
        (GPU, Grant(env={"A": "1", "B": "1"})),
        (NIC, Grant(env={"B": "2", "C": "2"})),
        (TPU, Grant(env={"C": "3", "A": "3"})),
    ]
    outcomes = [merge(order) for order in permutations(grants)]
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert outcomes[0] is not None
    assert outcomes[0].env == (("A", "1"), ("B", "1"), ("C", "2"))
    assert len(outcomes[0].conflicts) == 3
