"""How a node in this process ends, and what it leaves."""

import os
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from devlet.daemon.config import Config
from devlet.errors import InUse, Unavailable
from devlet.kit.clock import SystemClock
from devlet.objects.kinds import CONFIG_MAPS
from devlet.testing.node_life import Leftovers, NodeLife, beside

pytestmark = pytest.mark.anyio

CHECKPOINT = "dra_manager_state"


def at(root: Path) -> Callable[[], Config]:
    return lambda: Config(root, "node", controllers=frozenset())


def config_map(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}}


async def test_it_ends_in_good_order_and_can_begin_again_with_what_it_had(root: Path) -> None:
    async with beside() as tasks:
        life = NodeLife(tasks, at(root), SystemClock())
        await life.start()
        await life.parts.store.create(CONFIG_MAPS, config_map("a"), "default")
        with pytest.raises(InUse):
            await life.start()
        await life.stop()
        await life.stop()
        assert not life.is_running and not (root / "device-plugins/kubelet.sock").exists()
        with pytest.raises(Unavailable, match=r"restart\(\)"):
            _ = life.parts
        await life.start()
        assert await life.parts.store.get(CONFIG_MAPS, "a", "default")
        await life.stop()


async def test_a_crash_keeps_what_was_acknowledged_and_nothing_that_came_later(root: Path) -> None:
    async with beside() as tasks:
        life = NodeLife(tasks, at(root), SystemClock())
        await life.start()
        store = life.parts.store
        await store.create(CONFIG_MAPS, config_map("before"), "default")
        store.freeze()
        with pytest.raises(Unavailable):
            await store.create(CONFIG_MAPS, config_map("after"), "default")
        await life.crash()
        assert not life.is_running
        await life.start()
        found = await life.parts.store.list(CONFIG_MAPS, "default")
        assert "before" in (names := [each["metadata"]["name"] for each in found.items]) and "after" not in names
        await life.stop()


async def test_a_crash_leaves_sockets_without_listeners(root: Path) -> None:
    async with beside() as tasks:
        life = NodeLife(tasks, at(root), SystemClock())
        await life.start()
        await life.crash()
        for name in ("device-plugins/kubelet.sock", "devlet.sock", "pod-resources/kubelet.sock"):
            with closing(socket.socket(socket.AF_UNIX)) as client, pytest.raises(ConnectionRefusedError):
                client.connect(str(root / name))
        await life.start()
        await life.stop()


def test_files_are_as_they_were_and_those_that_came_later_are_gone(root: Path) -> None:
    (root / CHECKPOINT).write_bytes(b"before")
    (root / "device-plugins").mkdir()
    left = Leftovers.now(root)
    (root / CHECKPOINT).write_bytes(b"after")
    (root / "runtime_none_state").write_bytes(b"after")
    (root / "device-plugins/vendor.sock").write_bytes(b"of a driver")
    left.put_back()
    assert (root / CHECKPOINT).read_bytes() == b"before"
    assert sorted(os.listdir(root)) == ["device-plugins", CHECKPOINT]
    assert (root / "device-plugins/vendor.sock").exists()


async def test_an_error_of_the_block_stays_itself() -> None:
    with pytest.raises(ValueError, match="mine"):
        async with beside():
            raise ValueError("mine")


async def test_what_fails_beside_the_block_ends_it() -> None:
    async def fail() -> None:
        raise ValueError("theirs")

    with pytest.raises(ExceptionGroup) as caught:
        async with beside() as tasks:
            tasks.start_soon(fail)
            await anyio.sleep_forever()
    assert caught.group_contains(ValueError, match="theirs")


async def test_a_root_in_use_is_refused_and_the_other_node_keeps_running(root: Path) -> None:
    async with beside() as tasks:
        first, second = (NodeLife(tasks, at(root), SystemClock()) for _ in range(2))
        await first.start()
        with pytest.raises(InUse):
            await second.start()
        assert first.is_running
        await first.stop()
