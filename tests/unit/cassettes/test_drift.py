from typing import Any

import pytest

from devlet.cassettes import library
from devlet.cassettes.cassette import (
    Cassette,
    DeviceEdits,
    DeviceHealth,
    Driver,
    Grant,
    Metadata,
    Options,
    Plugin,
    PluginDevice,
    Pool,
)
from devlet.cassettes.drift import Difference, differences
from devlet.runtime.cdi.spec import ContainerEdits, Spec
from devlet.runtime.cdi.spec import Device as CdiDevice

DEVICE = "device gpu.example.com/{node}/gpu-0"


def driver(*devices: dict[str, Any], counters: tuple[dict[str, Any], ...] = (), **rest: Any) -> Cassette:
    return Cassette("n", drivers=(Driver("gpu.example.com", pools=(Pool("{node}", devices, counters),), **rest),))


def device(**members: Any) -> Cassette:
    return driver({"name": "gpu-0", **members})


def plugin(*devices: PluginDevice, **rest: Any) -> Cassette:
    return Cassette("n", plugins=(Plugin("example.com/led", devices, **rest),))


def told(before: Cassette, after: Cassette) -> list[tuple[Any, ...]]:
    return [(d.change, d.object, d.field, d.before, d.after) for d in differences(before, after)]


@pytest.mark.parametrize("name", library.names())
def test_a_cassette_does_not_differ_from_itself(name: str) -> None:
    assert differences(library.shipped(name), library.shipped(name)) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Cassette("n1"), Cassette("n2")),
        (device(capacity={"memory": {"value": "1Gi"}}), device(capacity={"memory": {"value": "1073741824"}})),
        (device(attributes={"gpu.example.com/x": {"int": 1}}), device(attributes={"x": {"int": 1}})),
        (driver(versions=("a",)), driver()),
        (driver(versions=("a", "b")), driver(versions=("b", "a"))),
        (
            driver({"name": "gpu-0"}, prepared=(DeviceEdits(ContainerEdits(env=("A=gpu-0",)), "{node}", "gpu-0"),)),
            driver({"name": "gpu-0"}, prepared=(DeviceEdits(ContainerEdits(env=("A={device}",))),)),
        ),
        (plugin(PluginDevice("a"), grants=(Grant(("a",), {"L": "a"}),)), plugin(PluginDevice("a"))),
        (
            plugin(PluginDevice("a"), grants=(Grant(("a",), {"L": "a"}),)),
            plugin(PluginDevice("a"), grants=(Grant((), {"L": "{ids}"}),)),
        ),
        (plugin(PluginDevice("a"), ids_unknown=True), plugin(PluginDevice("b"))),
        (driver({"name": "gpu-0"}, health=(DeviceHealth("{node}", "gpu-0", "Unhealthy"),)), driver({"name": "gpu-0"})),
        (
            driver({"name": "gpu-0"}, health=(DeviceHealth("{node}", "gpu-0", "Unhealthy", "81 °C"),)),
            driver({"name": "gpu-0"}, health=(DeviceHealth("{node}", "gpu-0", "Unhealthy", "82 °C"),)),
        ),
        (driver({"name": "b"}, {"name": "a"}), driver({"name": "a"}, {"name": "b"})),
        (
            device(taints=[{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]),
            device(taints=[{"key": "b", "effect": "NoExecute"}, {"key": "a", "effect": "NoSchedule"}]),
        ),
        (device(attributes={"x": {"strings": ["a", "b"]}}), device(attributes={"x": {"strings": ["b", "a"]}})),
        (plugin(PluginDevice("a"), PluginDevice("b")), plugin(PluginDevice("b"), PluginDevice("a"))),
        (
            driver({"name": "gpu-0"}, prepared=(DeviceEdits(ContainerEdits(env=("A=1", "B=2"))),)),
            driver({"name": "gpu-0"}, prepared=(DeviceEdits(ContainerEdits(env=("B=2", "A=1"))),)),
        ),
    ],
)
def test_equal_meanings_are_not_a_difference(before: Cassette, after: Cassette) -> None:
    assert told(before, after) == told(after, before) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (Cassette("n"), device(), ("added", "driver gpu.example.com", "", None, "1 device")),
        (device(), Cassette("n"), ("removed", "driver gpu.example.com", "", "1 device", None)),
        (driver(), device(), ("added", DEVICE, "", None, None)),
        (device(), driver(), ("removed", DEVICE, "", None, None)),
        (
            driver(versions=("v1.DRAPlugin",)),
            driver(versions=("v1beta1.DRAPlugin",)),
            ("changed", "driver gpu.example.com", "versions", ["v1.DRAPlugin"], ["v1beta1.DRAPlugin"]),
        ),
        (
            device(attributes={"driverVersion": {"version": "1.0.0"}}),
            device(attributes={"driverVersion": {"version": "1.0.1"}}),
            ("changed", DEVICE, "attributes[driverVersion]", {"version": "1.0.0"}, {"version": "1.0.1"}),
        ),
        (
            device(attributes={"x": {"bool": False}}),
            device(attributes={"x": {"int": 0}}),
            ("changed", DEVICE, "attributes[x]", {"bool": False}, {"int": 0}),
        ),
        (
            device(),
            device(attributes={"x": {"int": 0}}),
            ("changed", DEVICE, "attributes[x]", None, {"int": 0}),
        ),
        (
            device(capacity={"m": {"value": "1Gi"}}),
            device(capacity={"m": {"value": "2Gi"}}),
            ("changed", DEVICE, "capacity[m]", {"value": "1Gi"}, {"value": "2Gi"}),
        ),
        (
            device(),
            device(taints=[{"key": "a", "effect": "NoExecute"}]),
            ("changed", DEVICE, "taints[a:NoExecute]", None, ""),
        ),
        (
            device(consumesCounters=[{"counterSet": "c", "counters": {"m": {"value": "1"}}}]),
            device(consumesCounters=[{"counterSet": "c", "counters": {"m": {"value": "2"}}}]),
            ("changed", DEVICE, "consumesCounters[c]", {"m": {"value": "1"}}, {"m": {"value": "2"}}),
        ),
        (
            driver(counters=({"name": "c", "counters": {"m": {"value": "1"}}},)),
            driver(counters=({"name": "c", "counters": {"m": {"value": "2"}}},)),
            ("changed", "counters gpu.example.com/{node}/c", "m", {"value": "1"}, {"value": "2"}),
        ),
        (
            device(allowMultipleAllocations=True),
            device(),
            ("changed", DEVICE, "allowMultipleAllocations", True, None),
        ),
        (
            driver({"name": "gpu-0"}, prepared=(DeviceEdits(ContainerEdits(env=("A=1",))),)),
            driver({"name": "gpu-0"}, prepared=(DeviceEdits(ContainerEdits(env=("A=2",))),)),
            ("changed", DEVICE, "containerEdits", {"env": ("A=1",)}, {"env": ("A=2",)}),
        ),
        (Cassette("n"), plugin(), ("added", "plugin example.com/led", "", None, "0 devices")),
        (plugin(), plugin(PluginDevice("a")), ("added", "device example.com/led/a", "", None, None)),
        (
            plugin(PluginDevice("a")),
            plugin(PluginDevice("a", "Unhealthy")),
            ("changed", "device example.com/led/a", "health", "Healthy", "Unhealthy"),
        ),
        (
            plugin(PluginDevice("a")),
            plugin(PluginDevice("a", numa_nodes=(1,))),
            ("changed", "device example.com/led/a", "numaNodes", [], [1]),
        ),
        (
            plugin(options=Options(pre_start_required=True)),
            plugin(),
            ("changed", "plugin example.com/led", "preStartRequired", True, None),
        ),
        (
            plugin(PluginDevice("a"), ids_unknown=True),
            plugin(PluginDevice("x"), PluginDevice("y", "Unhealthy")),
            ("changed", "plugin example.com/led", "devices", 1, 2),
        ),
        (
            Cassette("n", cdi=(Spec("0.3.0", "a.b/c", (CdiDevice("x", ContainerEdits(env=("A=1",))),)),)),
            Cassette("n"),
            ("removed", "cdi a.b/c=x", "", None, None),
        ),
    ],
)
def test_a_difference_is_reported_once(before: Cassette, after: Cassette, expected: tuple[Any, ...]) -> None:
    assert told(before, after) == [expected]


def test_devices_are_told_in_the_order_in_which_people_count() -> None:
    after = driver(*({"name": f"gpu-{i}"} for i in (10, 9, 1)))
    assert [d.object.rpartition("/")[2] for d in differences(driver(), after)] == ["gpu-1", "gpu-9", "gpu-10"]


def test_a_whole_that_came_has_nothing_else_to_tell() -> None:
    before, after = Cassette("n", drivers=(Driver("gpu.example.com"),)), device()
    assert differences(before, after) == [
        Difference("added", "pool gpu.example.com/{node}", after="1 device"),  # type: ignore[arg-type]
    ]


def test_health_is_compared_where_both_know_it() -> None:
    devices = ({"name": "gpu-0"}, {"name": "gpu-1"})
    before = driver(*devices, health=(DeviceHealth("{node}", "gpu-0"), DeviceHealth("{node}", "gpu-1", "Unhealthy")))
    after = driver(*devices, health=(DeviceHealth("{node}", "gpu-0", "Unhealthy"),))
    assert told(before, after) == [
        ("changed", DEVICE, "health", "Healthy", "Unhealthy"),
        ("changed", "device gpu.example.com/{node}/gpu-1", "health", "Unhealthy", "Unknown"),
    ]


def test_what_a_cluster_cannot_know_is_not_a_difference() -> None:
    spec = Spec("0.3.0", "a.b/c", (CdiDevice("x", ContainerEdits(env=("A=b",))),))
    drivers, plugins = (Driver("silent.example.com"),), (Plugin("example.com/none"),)
    known = Cassette("n1", drivers=drivers, plugins=plugins, cdi=(spec,))
    cluster, devlet = (Cassette("n1", metadata=Metadata(source=source)) for source in ("cluster", "devlet"))
    assert differences(known, cluster) == differences(cluster, known) == []
    names = ["driver silent.example.com", "plugin example.com/none", "cdi a.b/c=x"]
    assert [each.object for each in differences(known, devlet)] == names


def test_what_a_cluster_knows_is_compared() -> None:
    drivers = (Driver("gpu.example.com", pools=(Pool("{node}"),)),)
    known = Cassette("n1", drivers=drivers, plugins=(Plugin("example.com/led", (PluginDevice("a"),)),))
    cluster = Cassette("n1", metadata=Metadata(source="cluster"))
    assert [each.change for each in differences(known, cluster)] == ["removed", "removed"]
    assert [each.change for each in differences(cluster, known)] == ["added", "added"]


def test_devices_that_an_incomplete_pool_lacks_may_still_be_there() -> None:
    counters = {"name": "c", "counters": {"m": {"value": "1"}}}
    whole = Pool("{node}", ({"name": "a"}, {"name": "b"}), (counters,))
    part = Pool("{node}", ({"name": "a", "allowMultipleAllocations": True},), incomplete=True)
    before, after = (Cassette("n1", drivers=(Driver("gpu.example.com", pools=(pool,)),)) for pool in (whole, part))
    for found in (differences(before, after), differences(after, before)):
        assert [(each.object, each.field) for each in found] == [
            ("device gpu.example.com/{node}/a", "allowMultipleAllocations")
        ]
