"""Real sockets, real directories, a real gRPC plugin. The clock is a fake: waits end when a test advances it."""

import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketListener, SocketStream

from devlet.errors import InvalidInput, PluginUnavailable
from devlet.kit.parts import running
from devlet.kit.processes import process, socket_accepts
from devlet.plugins import registration_client
from devlet.plugins.registration import Deregister, Handler, PluginWatcher, Register, Settings, WatchedPlugin, plan
from devlet.testing.fake_clock import FakeClock
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.waiting import deadline, until

A, B = Path("/r/a.sock"), Path("/r/b.sock")
PATIENT = Settings(client=registration_client.Settings(dial=60, get_info=60, notify=60))
LEFT_BEHIND = Settings(
    client=registration_client.Settings(dial=2, get_info=60, notify=60)
)  # for sockets without a listener


def test_nothing_is_planned_if_everything_is_registered() -> None:
    assert plan({}, {}) == []
    assert plan({A: 1, B: 2}, {A: 1, B: 2}) == []


@pytest.mark.spec("DP-8.60")
def test_new_sockets_are_registered_and_removed_ones_deregistered() -> None:
    assert plan({A: 1}, {}) == [Register(A, 1)]
    assert plan({}, {A: 1}) == [Deregister(A)]
    assert plan({B: 2}, {A: 1}) == [Deregister(A), Register(B, 2)]


@pytest.mark.spec("DP-8.59")
@pytest.mark.spec("DP-8.60")
def test_a_socket_that_was_created_again_is_not_the_registered_one() -> None:
    assert plan({A: 2}, {A: 1}) == [Deregister(A), Register(A, 2)]


class Recorder(Handler):
    """Records its calls. `refusal` is raised by register, which also waits for `gate`."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, Path]] = []
        self.invalid = ""
        self.refusal = ""
        self.gate = anyio.Event()
        self.gate.set()
        self.busy: list[Path] = []
        self.most_busy = 0
        self._called = anyio.Event()

    def validate(self, name: str, endpoint: Path, versions: Sequence[str]) -> None:
        self._note("validate", name, endpoint)
        if self.invalid:
            raise InvalidInput(self.invalid)

    async def register(self, name: str, endpoint: Path, versions: Sequence[str]) -> None:
        self._note("register", name, endpoint)
        assert endpoint not in self.busy, "two operations on one path"
        self.busy.append(endpoint)
        self.most_busy = max(self.most_busy, len(self.busy))
        await self.gate.wait()
        self.busy.remove(endpoint)
        if self.refusal:
            raise PluginUnavailable(name, self.refusal)

    async def deregister(self, name: str, endpoint: Path) -> None:
        assert endpoint not in self.busy, "two operations on one path"
        self._note("deregister", name, endpoint)

    async def until(self, verb: str, times: int = 1) -> None:
        with deadline():
            while self.verbs.count(verb) < times:
                await self._called.wait()

    @property
    def verbs(self) -> list[str]:
        return [verb for verb, _, _ in self.calls]

    def _note(self, verb: str, name: str, endpoint: Path) -> None:
        self.calls.append((verb, name, endpoint))
        self._called.set()
        self._called = anyio.Event()


class Bench:
    def __init__(self, root: Path) -> None:
        self.directory = root / "registry"
        self.clock = FakeClock()
        self.handler = Recorder()
        self.watcher = self.make(PATIENT)

    def make(self, settings: Settings) -> PluginWatcher:
        handlers = {"DevicePlugin": self.handler, "DRAPlugin": Recorder()}
        return PluginWatcher(self.directory, handlers, clock=self.clock, settings=settings)

    def plugin(self, name: str = "a", folder: str = "") -> FakeDevicePlugin:
        directory = self.directory / folder
        directory.mkdir(parents=True, exist_ok=True)
        return FakeDevicePlugin(directory, f"vendor.com/{name}", registry=directory, socket=f"{name}.sock")

    async def settled(self, *expected: tuple[str, bool]) -> list[WatchedPlugin]:
        """Wait until these sockets are watched, registered or not."""

        async def states() -> list[tuple[str, bool]]:
            return sorted((plugin.socket.stem, plugin.actual) for plugin in self.watcher.plugins())

        await until(states, lambda seen: seen == sorted(expected))
        return self.watcher.plugins()


@pytest.fixture
def bench(root: Path) -> Bench:
    made = Bench(root)
    made.directory.mkdir()
    return made


@pytest.mark.anyio
@pytest.mark.spec("DP-8.02")
async def test_the_watcher_creates_its_directory_and_can_run_again(root: Path, bench: Bench) -> None:
    bench.directory.rmdir()
    for times in (1, 2):
        async with running(bench.watcher.run):
            assert bench.directory.stat().st_mode & 0o777 == 0o750
            async with bench.plugin():
                await bench.handler.until("register", times)
                await bench.settled(("a", True))
            await bench.handler.until("deregister", times)
            await bench.settled()


@pytest.mark.anyio
@pytest.mark.spec("DP-8.58")
async def test_the_handler_sees_validate_then_register_then_deregister(bench: Bench) -> None:
    async with running(bench.watcher.run):
        async with bench.plugin() as plugin:
            plugin.endpoint = "/run/served-here.sock"
            await plugin.until_registered()
        await bench.handler.until("deregister")
    served = ("vendor.com/a", Path("/run/served-here.sock"))
    assert bench.handler.calls == [("validate", *served), ("register", *served), ("deregister", *served)]
    assert plugin.statuses == [(True, "")]
    assert [call.method for call in plugin.calls] == ["GetInfo", "NotifyRegistrationStatus"]


@pytest.mark.anyio
async def test_without_endpoint_the_plugin_is_served_on_the_socket_itself(bench: Bench) -> None:
    async with running(bench.watcher.run), bench.plugin() as plugin:
        await plugin.until_registered()
        assert bench.handler.calls[-1] == ("register", "vendor.com/a", plugin.path)


@pytest.mark.anyio
@pytest.mark.spec("DP-8.57")
async def test_existing_plugins_and_those_in_new_nested_directories_are_followed(bench: Bench) -> None:
    async with bench.plugin("early"), bench.plugin("deep", "x/y"):
        async with running(bench.watcher.run):
            await bench.settled(("deep", True), ("early", True))
            async with bench.plugin("zero"), bench.plugin("one", "1"), bench.plugin("two", "1/2"):
                await bench.settled(*((name, True) for name in ("deep", "early", "zero", "one", "two")))
            await bench.settled(("deep", True), ("early", True))
    assert sorted(name for verb, name, _ in bench.handler.calls if verb == "deregister") == [
        "vendor.com/one",
        "vendor.com/two",
        "vendor.com/zero",
    ]


@pytest.mark.anyio
@pytest.mark.spec("DP-8.55")
async def test_ten_sockets_with_one_name_are_ten_plugins(bench: Bench) -> None:
    async with running(bench.watcher.run), anyio.create_task_group() as tasks:
        plugins = [bench.plugin(str(number)) for number in range(10)]
        for plugin in plugins:
            plugin.resource = "vendor.com/same"
            await plugin.__aenter__()
        watched = await bench.settled(*((str(number), True) for number in range(10)))
        assert {plugin.name for plugin in watched} == {"vendor.com/same"}
        assert {plugin.socket for plugin in watched} == {plugin.path for plugin in plugins}
        for plugin in plugins:
            tasks.start_soon(plugin.stop)
        await bench.settled()


@pytest.mark.anyio
@pytest.mark.spec("DP-8.56")
@pytest.mark.spec("DP-8.60")
async def test_a_plugin_whose_socket_is_created_again_is_registered_again_at_once(bench: Bench) -> None:
    async with running(bench.watcher.run), bench.plugin() as plugin:
        for times in range(1, 11):
            await plugin.until_registered(times)
            await plugin.restart()
        await plugin.until_registered(11)
        assert bench.clock.monotonic() == 0
        assert bench.handler.verbs == ["validate", "register", "deregister"] * 10 + ["validate", "register"]
        assert len(await bench.settled(("a", True))) == 1


@pytest.mark.anyio
@pytest.mark.spec("DP-8.61")
async def test_operations_on_one_path_are_serial_and_on_different_paths_concurrent(bench: Bench) -> None:
    bench.handler.gate = anyio.Event()
    async with running(bench.watcher.run), bench.plugin("a") as a, bench.plugin("b"), bench.plugin("c"):
        await bench.handler.until("register", 3)
        await a.restart()
        await bench.settled(("a", True), ("b", True), ("c", True))
        assert bench.handler.verbs.count("validate") == 3
        assert bench.handler.most_busy == 3
        bench.handler.gate.set()
        await bench.handler.until("register", 4)
        await a.until_registered()
        mine = [verb for verb, _, endpoint in bench.handler.calls if endpoint == a.path]
        assert mine == ["validate", "register", "deregister", "validate", "register"]


@pytest.mark.anyio
async def test_a_socket_that_is_removed_during_registration_is_deregistered(bench: Bench) -> None:
    bench.handler.gate = anyio.Event()
    async with running(bench.watcher.run):
        async with bench.plugin():
            await bench.handler.until("register")
        assert bench.handler.verbs == ["validate", "register"]
        bench.handler.gate.set()
        await bench.handler.until("deregister")
        await bench.settled()
        assert bench.handler.verbs == ["validate", "register", "deregister"]


@pytest.mark.anyio
async def test_an_unknown_type_is_refused_with_type_and_socket_and_retried(bench: Bench) -> None:
    async with running(bench.watcher.run):
        plugin = bench.plugin()
        plugin.type = "CoffeePlugin"
        async with plugin:
            error = await plugin.until_refused()
            assert "CoffeePlugin" in error
            assert str(plugin.path) in error
            await bench.clock.sleeping(2)
            plugin.type = "DevicePlugin"
            await bench.clock.advance(0.5)
            await plugin.until_registered()


@pytest.mark.anyio
async def test_an_invalid_plugin_gets_the_error_of_the_handler_and_is_not_registered(bench: Bench) -> None:
    bench.handler.invalid = "not such a name"
    async with running(bench.watcher.run), bench.plugin() as plugin:
        assert await plugin.until_refused() == "not such a name"
        [watched] = await bench.settled(("a", False))
        assert (watched.type, watched.name, watched.desired) == ("DevicePlugin", "vendor.com/a", True)
    assert bench.handler.verbs == ["validate"]


@pytest.mark.anyio
@pytest.mark.parametrize("endpoint", ["relative.sock", "/" + "x" * 200])
async def test_an_invalid_endpoint_is_refused(bench: Bench, endpoint: str) -> None:
    async with running(bench.watcher.run):
        plugin = bench.plugin()
        plugin.endpoint = endpoint
        async with plugin:
            assert "endpoint" in await plugin.until_refused()
    assert bench.handler.calls == []


@pytest.mark.anyio
async def test_a_plugin_that_the_handler_cannot_register_is_notified_and_retried(bench: Bench) -> None:
    bench.handler.refusal = "cannot be dialled"
    async with running(bench.watcher.run), bench.plugin() as plugin:
        assert "cannot be dialled" in await plugin.until_refused()
        await bench.clock.sleeping(2)
        [watched] = bench.watcher.plugins()
        assert (watched.actual, "cannot be dialled" in watched.message) == (False, True)
        bench.handler.refusal = ""
        await bench.clock.advance(0.5)
        await plugin.until_registered()
        [watched] = await bench.settled(("a", True))
        assert watched.message == ""
    assert bench.handler.verbs[:4] == ["validate", "register"] * 2


@pytest.mark.anyio
async def test_a_plugin_that_cannot_be_notified_of_its_registration_is_deregistered(bench: Bench) -> None:
    async with running(bench.watcher.run):
        plugin = bench.plugin()
        plugin.fail("NotifyRegistrationStatus")
        async with plugin:
            await bench.handler.until("deregister")
            assert bench.handler.verbs == ["validate", "register", "deregister"]
            await bench.clock.sleeping(2)
            plugin.recover("NotifyRegistrationStatus")
            await bench.clock.advance(0.5)
            await bench.settled(("a", True))


@pytest.mark.anyio
async def test_the_wait_after_a_failure_doubles_from_half_a_second_to_two_minutes_and_two_seconds(bench: Bench) -> None:
    bench.handler.invalid = "no"
    bench.watcher = bench.make(Settings(check=1e9))
    waits = []
    async with running(bench.watcher.run), bench.plugin() as plugin:
        for times in range(1, 12):
            with deadline():
                await plugin.until_asked("GetInfo", times)
                await bench.clock.sleeping(2)
            waits.append(bench.clock.wakes_at[0] - bench.clock.monotonic())
            await bench.clock.advance(waits[-1])
    assert waits == [0.5, 1, 2, 4, 8, 16, 32, 64, 122, 122, 122]


@pytest.mark.anyio
async def test_a_socket_that_was_created_again_does_not_inherit_the_back_off(bench: Bench) -> None:
    bench.handler.invalid = "no"
    async with running(bench.watcher.run), bench.plugin() as plugin:
        await plugin.until_refused()
        await bench.clock.sleeping(2)
        bench.handler.invalid = ""
        await plugin.restart()
        await plugin.until_registered()
        assert bench.clock.monotonic() == 0


@pytest.mark.anyio
@pytest.mark.spec("DP-9.25")
async def test_a_socket_that_is_removed_during_the_back_off_is_forgotten_at_once(bench: Bench) -> None:
    bench.handler.invalid = "no"
    async with running(bench.watcher.run):
        async with bench.plugin() as plugin:
            await plugin.until_refused()
            await bench.clock.sleeping(2)
        await bench.settled()
        assert bench.clock.monotonic() == 0


@pytest.mark.anyio
async def test_a_plugin_that_hangs_does_not_delay_its_successor(bench: Bench) -> None:
    bench.watcher = bench.make(Settings(client=registration_client.Settings(get_info=1e6)))
    async with running(bench.watcher.run):
        async with bench.plugin() as plugin:
            plugin.hang("GetInfo")
            await plugin.until_asked("GetInfo")
            (bench.directory / "a.sock").rename(bench.directory / ".old")
            async with bench.plugin() as successor:
                with deadline():
                    await successor.until_registered()
    assert bench.handler.verbs[:2] == ["validate", "register"]


@asynccontextmanager
async def forwarding(listening: socket.socket, target: Path) -> AsyncIterator[None]:
    """Connect clients of the one socket to the other."""

    async def pump(source: SocketStream, sink: SocketStream) -> None:
        with suppress(anyio.BrokenResourceError):
            async for data in source:
                await sink.send(data)
            await sink.send_eof()

    async def forward(client: SocketStream) -> None:
        async with client, await anyio.connect_unix(target) as server, anyio.create_task_group() as tasks:
            tasks.start_soon(pump, server, client)
            tasks.start_soon(pump, client, server)

    async with anyio.create_task_group() as connections, anyio.create_task_group() as tasks:
        async with await SocketListener.from_socket(listening) as listener:
            tasks.start_soon(listener.serve, forward, connections)
            yield
            tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_a_socket_with_a_slightly_late_listener_is_registered_at_once(root: Path, bench: Bench) -> None:
    bench.watcher = bench.make(Settings())
    async with running(bench.watcher.run), FakeDevicePlugin(root, "vendor.com/a", registry=root) as plugin:
        with socket.socket(socket.AF_UNIX) as late:
            late.bind(str(bench.directory / "late.sock"))
            await bench.settled(("late", False))
            late.listen()
            async with forwarding(late, plugin.path):
                with deadline():
                    await plugin.until_registered()
                assert bench.clock.monotonic() == 0


@pytest.mark.anyio
@pytest.mark.spec("DP-9.26")
async def test_a_killed_plugin_is_deregistered_although_its_socket_remains(root: Path, bench: Bench) -> None:
    command = [sys.executable, "-m", "devlet.testing.fake_device_plugin", "--resource", "vendor.com/a"]
    where = ["--directory", str(bench.directory), "--registry", str(bench.directory), "--socket", "a.sock"]
    bench.watcher = bench.make(LEFT_BEHIND)
    async with running(bench.watcher.run):
        ready = socket_accepts(bench.directory / "a.sock")
        async with process([*command, *where], log=root / "log", ready=ready) as program:
            await bench.settled(("a", True))
            await bench.clock.advance(PATIENT.check)
            assert bench.handler.verbs == ["validate", "register"]
            os.kill(program.pid, signal.SIGKILL)
            with deadline():
                await program.wait()
        assert (bench.directory / "a.sock").is_socket()
        await bench.clock.advance(PATIENT.check)
        await bench.handler.until("deregister")
        await bench.clock.sleeping(2)
        [watched] = await bench.settled(("a", False))
        assert "no listener" in watched.message
        async with bench.plugin() as plugin:
            await plugin.until_registered()
    assert bench.handler.verbs[:5] == ["validate", "register", "deregister", "validate", "register"]


@pytest.mark.anyio
@pytest.mark.spec("DP-9.26")
async def test_a_listener_that_comes_back_on_the_same_socket_is_registered_again(root: Path, bench: Bench) -> None:
    path = bench.directory / "a.sock"
    bench.watcher = bench.make(LEFT_BEHIND)
    async with running(bench.watcher.run), FakeDevicePlugin(root, "vendor.com/a", registry=root) as plugin:
        with socket.socket(socket.AF_UNIX) as first:
            first.bind(str(path))
            await bench.clock.sleeping(2)  # one try has failed
            first.listen()
            async with forwarding(first, plugin.path):
                await bench.clock.advance(0.5)
                await plugin.until_registered()


@contextmanager
def crowded(path: Path) -> Iterator[None]:
    """Fill the backlog of the socket, so that the kernel refuses further connections."""
    with ExitStack() as clients, suppress(BlockingIOError):
        while True:
            client = clients.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
            try:
                client.connect(str(path))
            except BlockingIOError:
                yield
                raise


@pytest.mark.anyio
async def test_a_plugin_that_is_too_busy_to_accept_stays_registered(root: Path, bench: Bench) -> None:
    path = bench.directory / "a.sock"
    async with running(bench.watcher.run), FakeDevicePlugin(root, "vendor.com/a", registry=root) as plugin:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
            listening.listen(1)
            async with forwarding(listening.dup(), plugin.path):
                await bench.settled(("a", True))
                await plugin.until_registered()
            with crowded(path):
                await bench.clock.advance(PATIENT.check)
                await bench.settled(("a", True))
                assert bench.handler.verbs == ["validate", "register"]
        await bench.clock.advance(PATIENT.check)
        await bench.handler.until("deregister")


@pytest.mark.anyio
@pytest.mark.spec("DP-8.62")
async def test_views_show_desired_and_actual_state_per_socket(bench: Bench) -> None:
    async with running(bench.watcher.run), bench.plugin("good") as good:
        await bench.settled(("good", True))
        bench.handler.invalid = "no"
        async with bench.plugin("odd") as odd:
            await odd.until_refused()
            await bench.clock.sleeping(2)
            now = bench.clock.now()
            assert bench.watcher.plugins() == [
                WatchedPlugin(good.path, True, True, now, "DevicePlugin", "vendor.com/good", good.path),
                WatchedPlugin(odd.path, True, False, now, "DevicePlugin", "vendor.com/odd", None, "no"),
            ]


@pytest.mark.anyio
async def test_a_registry_that_cannot_be_created_is_named(root: Path) -> None:
    (root / "file").touch()
    watcher = PluginWatcher(root / "file" / "registry", {}, clock=FakeClock())
    with pytest.raises(InvalidInput, match="registry"):
        await watcher.run()


@pytest.mark.anyio
async def test_a_removed_registry_deregisters_all_plugins_and_is_followed_when_created_again(bench: Bench) -> None:
    async with running(bench.watcher.run):
        async with bench.plugin():
            await bench.settled(("a", True))
            bench.directory.rename(bench.directory.with_name("moved"))
            await bench.handler.until("deregister")
        async with bench.plugin() as again:
            await again.until_registered()
