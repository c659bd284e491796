"""Real sockets and directories; the node is its registration service only. The clock is a fake."""

import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskStatus
from anyio.lowlevel import checkpoint

from devlet.errors import Unavailable
from devlet.kit.changes import Changes
from devlet.kit.dir_watch import Change, Found, Gone, Rescanned
from devlet.kit.parts import running
from devlet.plugins.device_plugin import Offer
from devlet.plugins.registration_client import connected_client
from devlet.plugins.registration_server import RegistrationServer
from devlet.sdk.kubelet_registration import FoundRegistration, KubeletRegistration, KubeletSocket, Registration
from devlet.sdk.plugin_service import Optional
from devlet.sdk.server import SocketServer
from devlet.testing.fake_clock import FakeClock

pytestmark = pytest.mark.anyio

LED = "example.com/led"


class Node:
    """Notes who registers. While `refuses` is not empty it says no."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.offers: list[Offer] = []
        self.refused = 0
        self.refuses = ""
        self._changes = Changes()

    def running(self) -> AbstractAsyncContextManager[None]:
        return running(RegistrationServer(self.directory, self._register).run)

    async def heard(self, count: int) -> None:
        await self._changes.until(lambda: len(self.offers) >= count)

    async def said_no(self, count: int) -> None:
        await self._changes.until(lambda: self.refused >= count)

    async def _register(self, offer: Offer) -> None:
        if self.refuses:
            self.refused += 1
        else:
            self.offers.append(offer)
        self._changes.notify()
        if self.refuses:
            raise Unavailable(self.refuses)


class Plugin:
    """A registration at work, whose server serves nothing else."""

    def __init__(self, registration: Registration) -> None:
        self.registration = registration
        self.followed = True
        self.lives = 0
        self._served = anyio.Event()

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        with self.registration.watch:
            while True:
                server = SocketServer(self.registration.socket, self.registration.methods)
                async with server.serving():
                    self.lives += 1
                    self._served.set()
                    self._served = anyio.Event()
                    if self.lives == 1:
                        task_status.started()
                    await self.registration.keep(server, lambda: self.followed)

    async def served(self, lives: int) -> None:
        while self.lives < lives:
            await self._served.wait()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def node(root: Path) -> Node:
    return Node(root)


@asynccontextmanager
async def plugin(directory: Path, clock: FakeClock, *, found: bool = False) -> AsyncIterator[Plugin]:
    path = directory / "led.sock"
    made = FoundRegistration(LED, path, clock) if found else KubeletRegistration(LED, path, Optional(), clock)
    one = Plugin(made)
    async with running(one.run):
        yield one


def bound(path: Path) -> os.stat_result:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
    return path.stat()


def changed(path: Path, *changes: Change) -> tuple[int, bool]:
    kubelet = KubeletSocket(path)
    kubelet.apply([Rescanned(), Found(path, path.stat())])
    kubelet.apply(changes)
    return kubelet.generation, kubelet.is_there


def test_a_kubelet_socket_that_is_merely_seen_again_is_the_same(root: Path) -> None:
    path = root / "kubelet.sock"
    found = Found(path, bound(path))
    assert changed(path) == (1, True)
    assert (
        changed(path, found)
        == changed(path, Rescanned(), found)
        == changed(path, Rescanned(lost=True), found)
        == (1, True)
    )


def test_a_kubelet_socket_that_went_away_in_between_is_another_one_with_the_same_inode(root: Path) -> None:
    path = root / "kubelet.sock"
    found = Found(path, bound(path))
    assert changed(path, Gone(path), found) == (2, True)
    assert changed(path, Gone(root, directory=True), found) == (2, True)
    assert changed(path, Gone(path)) == (1, False)


def test_when_events_were_lost_a_socket_of_another_time_is_another_one(root: Path) -> None:
    path = root / "kubelet.sock"
    bound(path)
    kubelet = KubeletSocket(path)
    kubelet.apply([Rescanned(), Found(path, path.stat())])
    path.chmod(0o600)
    kubelet.apply([Rescanned(), Found(path, path.stat())])
    assert kubelet.generation == 1
    path.chmod(0o660)
    kubelet.apply([Rescanned(lost=True), Found(path, path.stat())])
    assert kubelet.generation == 2


def test_a_kubelet_socket_that_was_missing_in_a_look_around_is_another_one_later(root: Path) -> None:
    path = root / "kubelet.sock"
    found = Found(path, bound(path))
    kubelet = KubeletSocket(path)
    kubelet.apply([Rescanned(), found])
    kubelet.apply([Rescanned()])
    assert not kubelet.is_there
    kubelet.apply([found])
    assert (kubelet.generation, kubelet.is_there) == (2, True)


def test_only_a_socket_of_the_right_name_is_the_kubelets(root: Path) -> None:
    path = root / "kubelet.sock"
    path.touch()
    kubelet = KubeletSocket(path)
    kubelet.apply([Rescanned(), Found(path, path.stat()), Found(root / "other.sock", bound(root / "other.sock"))])
    assert not kubelet.is_there


async def test_it_waits_for_the_kubelet_and_says_so_once(
    root: Path, node: Node, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "devlet.sdk.kubelet_registration"):
        async with plugin(root, clock):
            while "waiting for the kubelet" not in caplog.messages:
                await checkpoint()
            async with node.running():
                await node.heard(1)
    assert [(offer.resource, offer.socket) for offer in node.offers] == [(LED, root / "led.sock")]
    assert caplog.messages.count("waiting for the kubelet") == 1


@pytest.mark.spec("DP-3.3")
async def test_a_refusal_is_reported_and_retried_with_growing_delays(
    root: Path, node: Node, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    node.refuses = "not now"
    pauses = []
    async with node.running(), plugin(root, clock):
        for tries in range(1, 5):
            await node.said_no(tries)
            await clock.sleeping(1)
            pauses.append(clock.wakes_at[0] - clock.monotonic())
            await clock.advance(pauses[-1])
        node.refuses = ""
        await clock.sleeping(1)
        await clock.advance(10)
        await node.heard(1)
    assert all(1.5 * one < other for one, other in pairwise(pauses))
    [record, *_] = [each for each in caplog.records if each.message == "registration failed, retrying"]
    assert record.__dict__["facts"]["err"] == "not now"


async def test_a_new_kubelet_is_not_kept_waiting_for_what_the_old_one_refused(
    root: Path, node: Node, clock: FakeClock
) -> None:
    node.refuses = "not now"
    async with plugin(root, clock):
        async with node.running():
            for tries in range(1, 6):
                await node.said_no(tries)
                await clock.sleeping(1)
                await clock.advance(clock.wakes_at[0] - clock.monotonic())
            await node.said_no(6)
            await clock.sleeping(1)
        async with node.running():
            await node.said_no(7)  # though no time has passed
            await clock.sleeping(1)
            assert clock.wakes_at[0] - clock.monotonic() < 1


@pytest.mark.spec("DP-9.03")
async def test_a_plugin_whose_list_has_no_reader_registers_again(root: Path, node: Node, clock: FakeClock) -> None:
    async with node.running(), plugin(root, clock) as one:
        await node.heard(1)
        await clock.sleeping(1)
        await clock.advance(60)
        await clock.sleeping(1)
        assert len(node.offers) == 1
        one.followed = False
        await clock.advance(60)
        await node.heard(2)
        assert one.lives == 1


async def test_without_its_socket_it_is_served_again_before_it_registers(
    root: Path, node: Node, clock: FakeClock
) -> None:
    async with node.running(), plugin(root, clock) as one:
        await node.heard(1)
        (root / "led.sock").unlink()
        await node.heard(2)
        assert one.lives == 2 and (root / "led.sock").is_socket()


async def test_it_comes_back_when_the_whole_directory_was_removed(root: Path, clock: FakeClock) -> None:
    directory = root / "device-plugins"
    node = Node(directory)
    async with plugin(directory, clock) as one:
        async with node.running():
            await node.heard(1)
        for each in directory.iterdir():
            each.unlink()
        directory.rmdir()
        await one.served(2)
        async with node.running():
            await node.heard(2)


async def test_a_call_that_is_never_answered_can_be_left(root: Path, clock: FakeClock) -> None:
    called = anyio.Event()

    async def silent(offer: Offer) -> None:
        called.set()
        await anyio.sleep_forever()

    async with running(RegistrationServer(root, silent).run), plugin(root, clock):
        await called.wait()
    assert not (root / "led.sock").exists()


@pytest.mark.spec("DP-2.6")
async def test_a_found_plugin_reports_its_type_name_and_endpoint(root: Path, clock: FakeClock) -> None:
    async with plugin(root, clock, found=True):
        async with connected_client(root / "led.sock") as client:
            said = await client.info()
            assert (said.type, said.name, said.endpoint) == ("DevicePlugin", LED, str(root / "led.sock"))
            assert said.versions == ("v1beta1",)


@pytest.mark.spec("DP-9.26")
async def test_a_found_plugin_without_a_reader_creates_its_socket_again(root: Path, clock: FakeClock) -> None:
    async with plugin(root, clock, found=True) as one:
        one.followed = False
        await clock.sleeping(1)
        await clock.advance(60)
        await clock.sleeping(1)
        assert one.lives == 1  # nobody has found it yet
        async with connected_client(root / "led.sock") as client:
            await client.accept()
        await clock.advance(60)
        await one.served(2)
        await clock.sleeping(1)
        await clock.advance(120)
        assert one.lives == 2


async def test_a_found_plugin_serves_again_when_its_socket_was_removed(root: Path, clock: FakeClock) -> None:
    async with plugin(root, clock, found=True) as one:
        (root / "led.sock").unlink()
        await one.served(2)
        assert (root / "led.sock").is_socket()
