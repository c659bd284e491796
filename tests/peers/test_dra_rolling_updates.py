"""Two instances of an unmodified DRA driver at once, as during a rolling update: the newest one that is there is
called, and the slices, which both publish, stay as they are."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devlet.testing.restarts import Restarts
from devlet.testing.waiting import until
from tests.support.peers.hooked_driver import AFTER, HookedDriver, Method
from tests.support.peers.peer_node import EXAMPLE, TEST, PeerNode, device

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

SETTINGS = "timeouts: {sliceWipeDelay: 4s}\n"
BOTH = pytest.mark.parametrize("name", [EXAMPLE, TEST])


@pytest.fixture(scope="module")
async def running(peers: "Peers") -> AsyncIterator[PeerNode]:
    peers.need("dra-example-kubeletplugin", "kubelet-claims")
    root = Path(tempfile.mkdtemp(prefix="dv"))
    async with PeerNode(root, peers.binaries, SETTINGS) as node:
        yield node
    shutil.rmtree(root)


@pytest.fixture
async def node(running: PeerNode) -> AsyncIterator[PeerNode]:
    """There are no drivers when the test begins."""
    await until(running.driver_states, lambda found: not any("registered" in each for each in found.values()))
    await running.call("DELETE", "/apis/resource.k8s.io/v1/resourceslices")
    yield running
    assert "Traceback" not in running.log


def instance(node: PeerNode, name: str, uid: str) -> Restarts[Any]:
    return node.example_driver(uid=uid, num_devices=3) if name == EXAMPLE else node.test_driver(uid=uid)


def nth(name: str, number: int) -> str:
    return f"gpu-{number}" if name == EXAMPLE else f"device-0{number}"


async def states(node: PeerNode, name: str) -> list[str]:
    """Of its instances, the one that is called first."""
    found = await node.driver_states()
    return [found[each]["state"] for each in sorted(found) if each.partition("~")[0] == name]


async def until_states(node: PeerNode, name: str, *wanted: str) -> None:
    await until(partial(states, node, name), lambda found: found == list(wanted))


@pytest.mark.spec("DN-9.3.15")
@BOTH
async def test_the_new_instance_serves_when_the_old_one_stops(node: PeerNode, name: str) -> None:
    async with instance(node, name, "old") as old:
        await until_states(node, name, "Connected")
        slices = await node.until_published(name)
        uid = await node.run("early", device(name))
        async with instance(node, name, "new"):
            await until_states(node, name, "Connected", "Standby")
            await node.run("amid", device(name, nth(name, 1)))
            await old.stop()
            await until_states(node, name, "Connected")
            await node.run("late", device(name, nth(name, 2)))
            assert await node.own_slices(name) == slices
            await node.leave_nothing(specs=[f"{TEST}-{uid}-req.json"])  # if only the old one knew of it
    shutil.rmtree(node.root / "cdi")


@pytest.mark.spec("DN-9.3.16")
@BOTH
async def test_the_old_instance_serves_when_the_new_one_stops(node: PeerNode, name: str) -> None:
    async with instance(node, name, "old"):
        await until_states(node, name, "Connected")
        slices = await node.until_published(name)
        async with instance(node, name, "new"):
            await until_states(node, name, "Connected", "Standby")
        await until_states(node, name, "Connected")
        await node.run("train", device(name))
        assert await node.own_slices(name) == slices
        await node.leave_nothing()


@pytest.mark.spec("DN-9.3.17")
@BOTH
async def test_slices_survive_a_short_gap_between_two_instances_and_not_the_end_of_the_last(
    node: PeerNode, name: str
) -> None:
    async with instance(node, name, "old"):
        await until_states(node, name, "Connected")
        slices = await node.until_published(name)
    await until_states(node, name, "Missing")
    async with instance(node, name, "new"):
        await until_states(node, name, "Connected")
        await node.run("train", device(name))
        assert await node.own_slices(name) == slices
        await node.leave_nothing()
    await until(partial(node.own_slices, name), lambda left: not left)


async def test_the_newest_instance_is_called(node: PeerNode) -> None:
    async with instance(node, TEST, "old") as old, instance(node, TEST, "new") as new:
        await until_states(node, TEST, "Connected", "Standby")
        uid = await node.run("train", device(TEST))
        assert [claim.uid for claim in await new.running.prepared()] == [uid]
        assert await old.running.calls(Method.PREPARE) == []
        await node.leave_nothing(old.running, new.running)


@pytest.mark.parametrize("last", ["old", "new"])
async def test_the_other_instance_prepares_what_one_was_killed_over(node: PeerNode, last: str) -> None:
    """It has answered, and nobody heard of it. Its sockets stay behind."""
    async with instance(node, TEST, "old") as old:
        await until_states(node, TEST, "Connected")
        if last == "old":
            async with instance(node, TEST, "new") as new:
                await until_states(node, TEST, "Connected", "Standby")
                await killed_over(node, new, old)
        else:
            await old.running.hold(Method.PREPARE, AFTER)
            await node.submit("train", device(TEST))
            await until_held(old.running)
            async with instance(node, TEST, "new") as new:
                await until_states(node, TEST, "Connected", "Standby")
                await old.kill()
                await node.until_phase("train", "Running")
                assert len(await new.running.prepared()) == 1
                await node.leave_nothing(new.running)
    remove_sockets(node)


async def killed_over(node: PeerNode, victim: Restarts[HookedDriver], other: Restarts[HookedDriver]) -> None:
    await victim.running.hold(Method.PREPARE, AFTER)
    await node.submit("train", device(TEST))
    await until_held(victim.running)
    await victim.kill()
    await node.until_phase("train", "Running")
    assert len(await other.running.prepared()) == 1
    await node.leave_nothing(other.running)


async def until_held(driver: HookedDriver) -> None:
    await until(partial(driver.calls, Method.PREPARE), lambda calls: bool(calls) and calls[-1].stage == AFTER)


def remove_sockets(node: PeerNode) -> None:
    """Of those that were killed, which would be asked for seconds yet."""
    for path in node.registry.glob(f"{TEST}-*-reg.sock"):
        path.unlink()


async def test_a_call_under_way_ends_with_the_old_instance_that_has_it(node: PeerNode) -> None:
    async with instance(node, TEST, "old") as old:
        await until_states(node, TEST, "Connected")
        await old.running.block(Method.PREPARE)
        await node.submit("train", device(TEST))
        await until(partial(old.running.calls, Method.PREPARE))
        async with instance(node, TEST, "new") as new:
            await until_states(node, TEST, "Connected", "Standby")
            await old.running.unblock(Method.PREPARE)
            await node.until_phase("train", "Running")
            assert (len(await old.running.prepared()), await new.running.calls(Method.PREPARE)) == (1, [])
        await until_states(node, TEST, "Connected")
        await node.leave_nothing(old.running)


async def test_both_instances_are_found_again_after_a_restart_of_devlet(node: PeerNode) -> None:
    async with instance(node, EXAMPLE, "old") as old, instance(node, EXAMPLE, "new"):
        await until_states(node, EXAMPLE, "Connected", "Standby")
        uid = await node.run("train", device(EXAMPLE))
        slices = await node.until_published(EXAMPLE)
        await node.kill()
        await node.start()
        await until_states(node, EXAMPLE, "Connected", "Standby")
        await old.stop()
        await until_states(node, EXAMPLE, "Connected")
        assert (await node.own_slices(EXAMPLE), node.example_claims()) == (slices, [uid])
        await node.leave_nothing()
        assert node.example_claims() == []
