from typing import Any

import pytest

from devlet.cassettes.cassette import DeviceEdits, DeviceHealth, Grant, Options, PluginDevice, Pool
from devlet.cassettes.recording import Found, SpecFile, incomplete, recorded, remarks, renamed
from devlet.runtime.cdi.spec import ContainerEdits, Hook, Spec
from devlet.runtime.cdi.spec import Device as CdiDevice

DRIVER, RESOURCE = "gpu.example.com", "example.com/led"
UID = "6b1c2f9e-0000-4000-8000-000000000001"


def slice_of(
    *devices: dict[str, Any], pool: str = "n1", generation: int = 1, count: int = 1, **more: Any
) -> dict[str, Any]:
    numbers = {"name": pool, "generation": generation, "resourceSliceCount": count}
    return {"spec": {"driver": DRIVER, "nodeName": "n1", "pool": numbers, "devices": list(devices), **more}}


def prepared(*devices: dict[str, Any], uid: str = UID) -> dict[str, Any]:
    parts = [{"driver": DRIVER, "prepared": True, "devices": list(devices)}, {"driver": "x.y", "prepared": False}]
    return {"spec": {"uid": uid}, "status": {"drivers": parts}}


def file(name: str, kind: str, **devices: tuple[str, ...]) -> SpecFile:
    made = tuple(CdiDevice(key, ContainerEdits(env=env)) for key, env in devices.items())
    return SpecFile(name, Spec("0.5.0", kind, made))


def test_the_slices_of_a_pool_are_one_pool_and_old_generations_do_not_count() -> None:
    counters = {"name": "c", "counters": {"m": {"value": "1"}}}
    slices = [
        slice_of({"name": "old"}, generation=1),
        slice_of({"name": "a"}, generation=2, count=3),
        slice_of({"name": "b"}, generation=2, count=3),
        slice_of(generation=2, count=3, sharedCounters=[counters]),
        slice_of({"name": "c"}, pool="other"),
    ]
    (driver,) = recorded(Found("n1", slices=slices)).drivers
    assert driver.pools == (
        Pool("other", ({"name": "c"},)),
        Pool("{node}", ({"name": "a"}, {"name": "b"}), (counters,)),
    )


def test_a_pool_that_lacks_slices_is_marked_and_named() -> None:
    """Until the last slice of a generation is there, the old ones may still be."""
    whole = [slice_of({"name": "c"}, pool="whole", count=2), slice_of({"name": "d"}, pool="whole", count=2)]
    partly = [slice_of({"name": "a"}, count=1), slice_of({"name": "a"}, generation=2, count=2)]
    found = Found("n1", slices=[*whole, *partly])
    assert incomplete(found.slices) == [(DRIVER, "n1")]
    assert [(pool.name, pool.incomplete) for pool in recorded(found).drivers[0].pools] == [
        ("whole", False),
        ("{node}", True),
    ]
    told = f"pool n1 of driver {DRIVER} is incomplete, devices may be missing: 1 of its 2 slices exist"
    assert list(remarks(found)) == [told]


def test_when_a_taint_was_added_is_not_recorded() -> None:
    taint = {"key": "a", "effect": "NoSchedule"}
    found = recorded(Found("n1", slices=[slice_of({"name": "a", "taints": [{**taint, "timeAdded": "2026"}]})]))
    assert found.drivers[0].pools[0].devices == ({"name": "a", "taints": [taint]},)


def test_versions_are_those_of_drivers_that_are_there() -> None:
    views: list[dict[str, Any]] = [
        {"spec": {"driver": DRIVER, "endpoint": "/x", "advertised": ["v1.DRAPlugin"]}},
        {"spec": {"driver": DRIVER, "endpoint": "/y", "advertised": ["v1beta1.DRAPlugin"]}},
        {"spec": {"driver": "missing.example.com"}},
    ]
    (driver,) = recorded(Found("n1", drivers=views)).drivers
    assert (driver.name, driver.versions) == (DRIVER, ("v1.DRAPlugin",))


def test_what_claims_got_is_found_by_their_cdi_devices_without_uids_and_credentials() -> None:
    device = {"pool": "n1", "device": "gpu-0", "cdiDevices": ["gpu.example.com/claim=a", "nvidia.com/gpu=all"]}
    gone = {"pool": "n1", "device": "gone", "cdiDevices": ["gpu.example.com/claim=b"]}
    found = Found(
        "n1",
        slices=[slice_of({"name": "gpu-0"})],
        prepared_claims=[prepared(device, gone)],
        specs=[
            file(f"gpu-{UID}.json", "gpu.example.com/claim", a=("GPU=gpu-0", f"DIR=/x/{UID}"), b=("GPU=b",)),
            file("nvidia.yaml", "nvidia.com/gpu", all=("PASSWORD=x",), other=("A=b",)),
        ],
    )
    cassette = recorded(found)
    edits = ContainerEdits(env=("GPU={device}", "DIR=/x/{claim.uid}", "PASSWORD=redacted"))
    assert cassette.drivers[0].prepared == (DeviceEdits(edits),)
    assert [(spec.kind, [d.name for d in spec.devices]) for spec in cassette.cdi] == [("nvidia.com/gpu", ["other"])]
    assert UID not in repr(cassette)


def test_hooks_do_not_give_credentials_away_either() -> None:
    edits = ContainerEdits(hooks=(Hook("prestart", "/bin/x", ("x", "--token=x"), env=("API_TOKEN=x", "A=b")),))
    (spec,) = recorded(Found("n1", specs=[SpecFile("a.json", Spec("0.3.0", "a.b/c", (CdiDevice("x", edits),)))])).cdi
    (hook,) = spec.devices[0].container_edits.hooks
    assert (hook.args, hook.env) == (("x", "--token=redacted"), ("API_TOKEN=redacted", "A=b"))


def test_nor_do_annotations_of_specs() -> None:
    device = CdiDevice("x", ContainerEdits(env=("A=b",)), annotations={"a.b/token": "x", "a.b/claim": f"of {UID}"})
    made = Spec("0.6.0", "a.b/c", (device,), annotations={"a.b/password": "x", "a.b/model": "y"})
    (spec,) = recorded(Found("n1", specs=[SpecFile("a.json", made)], prepared_claims=[prepared()])).cdi
    assert spec.annotations == {"a.b/password": "redacted", "a.b/model": "y"}
    assert spec.devices[0].annotations == {"a.b/token": "redacted", "a.b/claim": "of {claim.uid}"}


def test_a_spec_of_a_claim_that_is_gone_is_left_out() -> None:
    specs = [file(f"driver_{UID}.json", "a.b/dra", x=("A=b",)), file("static.json", "a.b/dev", x=("A=b",))]
    assert [spec.kind for spec in recorded(Found("n1", specs=specs)).cdi] == ["a.b/dev"]


def test_plugins_have_their_devices_options_and_grants() -> None:
    def device(id: str, health: str = "Healthy") -> dict[str, Any]:
        return {"spec": {"resource": RESOURCE, "id": id, "numaNodes": [1]}, "status": {"health": health}}

    options = {"preStartRequired": True, "getPreferredAllocationAvailable": False}
    found = Found(
        "n1",
        plugins=[{"spec": {"resource": RESOURCE, "options": options}}],
        devices=[device("led-10"), device("led-9", "Unhealthy")],
        answers={RESOURCE: [Grant(("led-9",), env={"L": "led-9", "API_KEY": "x"}), Grant(("gone",), env={"L": "z"})]},
        capacity={RESOURCE: "9", "example.com/other": "1", "cpu": "8", "hugepages-2Mi": "0"},
    )
    led, other = recorded(found).plugins
    assert led.devices == (PluginDevice("led-9", "Unhealthy", (1,)), PluginDevice("led-10", "Healthy", (1,)))
    assert led.options == Options(pre_start_required=True)
    assert led.grants == (Grant(env={"API_KEY": "redacted", "L": "{ids}"}),)
    assert (other.resource, other.ids_unknown) == ("example.com/other", True)


@pytest.mark.parametrize("health", ["Sick", "Unknown", "unhealthy"])
def test_what_is_not_healthy_is_unhealthy_as_for_a_node(health: str) -> None:
    devices = [{"spec": {"resource": RESOURCE, "id": "a"}, "status": {"health": health}}]
    (plugin,) = recorded(Found("n1", devices=devices)).plugins
    assert plugin.devices == (PluginDevice("a", "Unhealthy"),)


def test_a_nodes_status_says_how_many_devices_there_are() -> None:
    found = Found(
        "n1", capacity={"example.com/led": "3", "example.com/none": "0"}, allocatable={"example.com/led": "2"}
    )
    (plugin,) = recorded(found).plugins
    assert [(d.id, d.health) for d in plugin.devices] == [
        ("led-0", "Healthy"),
        ("led-1", "Healthy"),
        ("led-2", "Unhealthy"),
    ]


def test_a_resource_that_does_not_count_devices_is_left_out_with_a_remark() -> None:
    found = Found("n1", capacity={"gpu.example.com/memory": "17179869184", "example.com/led": "2"})
    assert [plugin.resource for plugin in recorded(found).plugins] == ["example.com/led"]
    told = "gpu.example.com/memory is left out: 17179869184 are more than the limit of 10000 devices on a cassette"
    assert list(remarks(found)) == [told]


def test_what_fits_is_kept_if_not_everything_does() -> None:
    amounts = {"example.com/a": "6k", "example.com/b": "5k", "example.com/c": "3999"}
    found = Found("n1", slices=[slice_of({"name": "gpu"})], capacity=amounts)
    assert [plugin.resource for plugin in recorded(found).plugins] == ["example.com/b", "example.com/c"]
    assert [text.partition(" ")[0] for text in remarks(found)] == ["example.com/a"]
    assert list(remarks(Found("n1", capacity={"example.com/led": "10k"}))) == []


def test_another_name_of_the_node_changes_nothing_else() -> None:
    cassette = recorded(Found("n1", slices=[slice_of({"name": "a"})]), "file")
    new = renamed(cassette, "laptop")
    assert (new.node, new.drivers, new.metadata.name) == ("laptop", cassette.drivers, "file")


def test_health_is_that_of_devices_whose_driver_tells_it_now() -> None:
    views: list[dict[str, Any]] = [
        {"spec": {"driver": DRIVER, "endpoint": "/x", "healthService": "v1.DRAResourceHealth"}},
        {"spec": {"driver": "silent.example.com", "endpoint": "/y"}},
    ]
    told = [
        DeviceHealth("n1", "gpu-10", "Unhealthy", f"too hot since {UID}"),
        DeviceHealth("n1", "gpu-9"),
        DeviceHealth("n1", "gone", "Unhealthy"),
        DeviceHealth("other", "gpu-1", "Unknown", "see https://me:secret@example.com"),
    ]
    slices = [slice_of({"name": "gpu-9"}, {"name": "gpu-10"}), slice_of({"name": "gpu-1"}, pool="other")]
    health = {DRIVER: told, "silent.example.com": told, "left.example.com": told}
    found = Found("n1", slices=slices, drivers=views, health=health, prepared_claims=[prepared()])
    gpu, silent = recorded(found).drivers
    assert gpu.health == (
        DeviceHealth("other", "gpu-1", "Unknown", "redacted"),
        DeviceHealth("{node}", "gpu-9"),
        DeviceHealth("{node}", "gpu-10", "Unhealthy", "too hot since {claim.uid}"),
    )
    assert silent.health == ()
