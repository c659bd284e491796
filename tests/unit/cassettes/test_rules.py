from typing import Any

import pytest
from msgspec.structs import replace

from devlet.cassettes import library
from devlet.cassettes.cassette import (
    Cassette,
    DeviceEdits,
    DeviceHealth,
    Driver,
    Grant,
    Plugin,
    PluginDevice,
    Pool,
)
from devlet.cassettes.rules import MAX_DEVICES, MAX_DRIVERS, problems
from devlet.runtime.cdi.spec import ContainerEdits, Hook, Spec
from devlet.runtime.cdi.spec import Device as CdiDevice


def driver(*devices: dict[str, Any], pool: str = "{node}", **rest: Any) -> Cassette:
    return Cassette("n1", drivers=(Driver("gpu.example.com", pools=(Pool(pool, devices),), **rest),))


def counting(*devices: dict[str, Any]) -> Cassette:
    counters = {"name": "c", "counters": {"m": {"value": "1"}}}
    return Cassette("n1", drivers=(Driver("gpu.example.com", pools=(Pool("{node}", devices, (counters,)),)),))


def plugin(*devices: PluginDevice, **rest: Any) -> Cassette:
    return Cassette("n1", plugins=(Plugin("example.com/led", devices, **rest),))


@pytest.mark.parametrize("name", library.names())
def test_what_is_shipped_is_good(name: str) -> None:
    assert list(problems(library.shipped(name))) == []


@pytest.mark.parametrize(
    ("cassette", "told"),
    [
        (Cassette(""), "node: must not be empty"),
        (Cassette("../n"), "node: a lowercase RFC 1123 subdomain"),
        (Cassette("n1", drivers=(Driver(""),)), "drivers[0].name: '': must not be empty"),
        (Cassette("n1", drivers=(Driver("/etc/passwd"),)), "drivers[0].name: '/etc/passwd':"),
        (Cassette("n1", drivers=(Driver("a.b"), Driver("a.b"))), "drivers: 'a.b' occurs 2 times"),
        (driver(pool="../x"), "drivers[0].pools[0].name:"),
        (driver({"name": "A B"}), "drivers[0].pools[0].devices[0].name:"),
        (driver(*({"name": f"d{i}"} for i in range(70)), {"name": "d5"}), "devices: 'd5' occurs 2 times"),
        (driver(*({"name": f"d{i}"} for i in range(70)), {"name": "X"}), "drivers[0].pools[0].devices[70].name:"),
        (driver({"name": "a", "colour": 1}), "drivers[0].pools[0].devices[0].colour: unknown field"),
        (driver({"name": "a", "attributes": {"x": {"int": "no"}}}), "drivers[0].pools[0]: cannot unmarshal"),
        (driver({"name": "a", "attributes": {"x": {"int": 1, "bool": True}}}), "devices[0].attributes[x]"),
        (driver({"name": "a"}, prepared=(DeviceEdits(ContainerEdits(), "p", "b"),)), "no device 'b' in a pool 'p'"),
        (driver({"name": "a"}, health=(DeviceHealth("p", "a"),)), "drivers[0].health[0]: there is no device 'a' in a"),
        (
            driver({"name": "a"}, health=(DeviceHealth("{node}", "a", "Well"),)),
            "'Well' is not one of Healthy, Unhealthy",
        ),
        (
            driver({"name": "a"}, health=(DeviceHealth("{node}", "a"),) * 2),
            "drivers[0].health: '{node}/a' occurs 2 times",
        ),
        (driver({"name": ["a"]}), "drivers[0].pools[0]: cannot unmarshal array into field devices[0].name"),
        (
            driver({"name": "a", "consumesCounters": 5}),
            "cannot unmarshal number into field devices[0].consumesCounters",
        ),
        (
            driver({"name": "a", "consumesCounters": [{"counterSet": ["c"]}]}),
            "cannot unmarshal array into field devices[0].consumesCounters[0].counterSet",
        ),
        (
            counting({"name": "a", "consumesCounters": [{"counterSet": "c", "counters": {"n": {"value": "1"}}}]}),
            "drivers[0].pools[0].devices[0].consumesCounters: there is no counter 'n' in the counter set 'c'",
        ),
        (driver(prepared=(DeviceEdits(ContainerEdits(env=("A",))),)), "drivers[0].prepared[0].containerEdits.env[0]"),
        (
            driver(prepared=(DeviceEdits(ContainerEdits(hooks=(Hook("no", "x"),))),)),
            "drivers[0].prepared[0].containerEdits.hooks[0]",
        ),
        (plugin(PluginDevice("a", numa_nodes=(1 << 31,))), "plugins[0].devices: a NUMA node is a number from 0 to"),
        (plugin(grants=(Grant(env={"A": "1"}), Grant(env={"A": "2"}))), "plugins[0].grants: '' occurs 2 times"),
        (plugin(grants=(Grant(env={"": "1"}),)), "plugins[0].grants[0].env: '' cannot be the name of a variable"),
        (plugin(grants=(Grant(env={"A=B": "1"}),)), "plugins[0].grants[0].env: 'A=B' cannot be the name"),
        (plugin(PluginDevice("")), "plugins[0].devices: an id must be printable"),
        (plugin(PluginDevice("ü" * 513)), "plugins[0].devices: an id must be printable and have 1 to 1024 bytes"),
        (plugin(PluginDevice("a", "Sick")), "plugins[0].devices: the health 'Sick' is not one of Healthy, Unhealthy"),
        (plugin(PluginDevice("a", "Unknown")), "plugins[0].devices: the health 'Unknown' is not one of"),
        (
            Cassette("n1", drivers=(Driver("gpu.example.com", pools=(Pool("{node}"), Pool("n1"))),)),
            "drivers[0].pools: 'n1' is the name of the node, whose pool is {node}: rename one of them",
        ),
        (plugin(PluginDevice("a\n")), "plugins[0].devices: an id must be printable"),
        (plugin(PluginDevice("a"), PluginDevice("a")), "plugins[0].devices: 'a' occurs 2 times"),
        (plugin(PluginDevice("a", numa_nodes=(-1,))), "plugins[0].devices: a NUMA node is a number from 0"),
        (plugin(PluginDevice("a"), grants=(Grant(("b",)),)), "plugins[0].grants[0].ids: there is no device 'b'"),
        (Cassette("n1", cdi=(Spec("0.3.0", "a/b", (CdiDevice("x", ContainerEdits()),)),)), "cdi[0].devices[0]"),
    ],
)
def test_a_broken_rule_is_reported_with_its_place(cassette: Cassette, told: str) -> None:
    found = list(problems(cassette))
    assert any(told in text for text in found), found


def test_limits_hold_before_anything_is_looked_at() -> None:
    many = tuple({"name": "/"} for _ in range(MAX_DEVICES + 1))
    assert list(problems(driver(*many))) == [f"{MAX_DEVICES + 1} devices are more than the limit of {MAX_DEVICES}"]
    drivers = (Driver("/"),) * (MAX_DRIVERS + 1)
    assert list(problems(Cassette("n1", drivers=drivers))) == ["drivers: 101 are more than the limit of 100"]
    pools = (Pool("/"),) * 101
    assert list(problems(Cassette("n1", drivers=(Driver("a", pools=pools),)))) == [
        "a driver has more than the limit of 100 pools"
    ]


def test_counters_are_checked_too() -> None:
    good = library.shipped("a100-mig")
    (gpu,) = good.drivers
    bad = replace(gpu.pools[0], shared_counters=({"name": "a", "counters": {"x": {"value": "many"}}},))
    found = list(problems(replace(good, drivers=(replace(gpu, pools=(bad,)),))))
    assert found[0].startswith("drivers[0].pools[0]: quantities must match")
    assert "in field sharedCounters[0].counters.x.value" in found[0]
    assert "devices[0].consumesCounters: there is no counter set 'gpu-0-counter-set' in the pool" in found[1]
