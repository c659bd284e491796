from typing import Any

import pytest

from devlet.cassettes import cassette
from devlet.cassettes.cassette import (
    DeviceEdits,
    DeviceHealth,
    Driver,
    Grant,
    Options,
    Plugin,
    PluginDevice,
    Pool,
)
from devlet.cassettes.virtual_drivers import VirtualDriver, virtual_driver, virtual_plugin
from devlet.errors import InvalidInput
from devlet.objects.types.claim import DeviceResult, ResourceClaim
from devlet.runtime.cdi.spec import ContainerEdits, DeviceNode
from devlet.sdk import values
from devlet.sdk.device_plugin import DevicePlugin
from devlet.sdk.dra_driver import DraDriver

pytestmark = pytest.mark.anyio


async def first(lists: Any) -> Any:
    return await anext(aiter(lists))


def claim(pool: str, device: str) -> values.Claim:
    result = DeviceResult(request="r", driver="d.e", pool=pool, device=device)  # type: ignore[arg-type]
    return values.Claim(values.ClaimRef("ns", "c", "uid-1"), (result,), (), ResourceClaim(), {})


def driver(edits: ContainerEdits) -> Driver:
    return Driver("d.e", pools=(Pool("{node}", ({"name": "a"},)),), prepared=(DeviceEdits(edits),))


async def test_the_nodes_own_pool_has_the_name_of_this_node() -> None:
    counters = ({"name": "c", "counters": {"m": {"value": "4"}, "none": {}, "null": None}},)
    devices = ({"name": "a", "attributes": {"x": {"int": 1}}},)
    recorded = Driver("d.e", pools=(Pool("{node}", devices, counters), Pool("rack")))
    pools = await first(VirtualDriver(recorded, "n2").devices())
    assert list(pools) == ["n2", "rack"]
    assert pools["n2"].devices == [values.Device("a", more={"attributes": {"x": {"int": 1}}})]
    assert pools["n2"].counters == {"c": {"m": "4", "none": "0", "null": "0"}}


async def test_a_claim_gets_what_was_recorded() -> None:
    recorded = driver(ContainerEdits(env=("GPU={device}", "CLAIM={claim.uid}", "NODE={node}")))
    (prepared,) = await VirtualDriver(recorded, "n2").prepare(claim("n2", "a"))
    assert prepared.edits == ContainerEdits(env=("GPU=a", "CLAIM=uid-1", "NODE=n2"))


async def test_nodes_that_are_not_here_are_left_out_unless_they_are_wanted() -> None:
    edits = ContainerEdits(env=("A=b",), device_nodes=(DeviceNode("/dev/no-such-node"), DeviceNode("/dev/null")))
    for strict in (False, True):
        (prepared,) = await VirtualDriver(driver(edits), "n2", strict=strict).prepare(claim("n2", "a"))
        assert prepared.edits is not None
        assert [node.path for node in prepared.edits.device_nodes] == ["/dev/no-such-node"] * strict + ["/dev/null"]


async def test_a_plugin_has_its_list_and_grants() -> None:
    nodes = (cassette.DeviceNode("/dev/x", "/dev/null"), cassette.DeviceNode("/dev/y", "/dev/no-such-node", "r"))
    grant = Grant(env={"L": "{ids}"}, devices=nodes, mounts=(cassette.Mount("/in", "/", True),))
    recorded = Plugin("example.com/led", (PluginDevice("a", "Unhealthy", (1,)),), grants=(grant,))
    plugin = virtual_plugin(recorded)
    assert await first(plugin.devices()) == [values.PluginDevice("a", "Unhealthy", (1,))]
    assert await plugin.allocate(["b", "a"]) == values.Grant(
        env={"L": "a,b"}, devices=[values.DeviceNode("/dev/null", "/dev/x")], mounts=[values.Mount("/", "/in")]
    )
    whole = await virtual_plugin(recorded, strict=True).allocate(["a"])
    assert whole.devices[1] == values.DeviceNode("/dev/no-such-node", "/dev/y", "r")


async def test_a_plugin_offers_the_calls_that_were_offered() -> None:
    plain = type(virtual_plugin(Plugin("example.com/led")))
    assert (plain.prefer, plain.pre_start) == (DevicePlugin.prefer, DevicePlugin.pre_start)
    plugin = virtual_plugin(Plugin("example.com/led", options=Options(True, True)))
    assert type(plugin).pre_start is not DevicePlugin.pre_start
    assert await plugin.prefer(["c", "b", "a"], ["b"], 2) == ["b", "a"]
    await plugin.pre_start(["a"])


def test_a_pool_that_would_hide_another_one_is_refused() -> None:
    recorded = Driver("gpu.example.com", pools=(Pool("{node}"), Pool("rack")))
    assert virtual_driver(recorded, "n2").name == "gpu.example.com"
    told = "^gpu.example.com: on node rack its pools {node} and rack would be one: play it on a node of another name$"
    with pytest.raises(InvalidInput, match=told):
        virtual_driver(recorded, "rack")


async def test_health_is_reported_if_it_was_recorded() -> None:
    sick = DeviceHealth("{node}", "a", "Unhealthy", "too hot")
    told = virtual_driver(Driver("d.e", health=(sick, DeviceHealth("rack", "b"))), "n2").health()
    assert await first(told) == [
        values.DeviceHealth("n2", "a", values.UNHEALTHY, "too hot"),
        values.DeviceHealth("rack", "b", values.HEALTHY),
    ]
    assert await first(virtual_driver(Driver("d.e", versions=("v1.DRAResourceHealth",)), "n2").health()) == []
    silent = virtual_driver(Driver("d.e", versions=("v1.DRAPlugin",)), "n2")
    assert type(silent).health is DraDriver.health
