"""Plugins on real sockets, without a node: what comes and goes there is tests/contract/test_sdk_device_plugin.py."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from devlet.errors import DevletError, InUse, InvalidInput
from devlet.kit.parts import running
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.plugins.device_plugin import DevicePlugin as Client
from devlet.plugins.device_plugin import Offer, connected
from devlet.sdk.device_plugin import DevicePlugin, PluginOptions
from devlet.sdk.values import Grant, PluginDevice
from devlet.testing.fake_clock import FakeClock

pytestmark = pytest.mark.anyio

Step = Sequence[PluginDevice] | Exception | Callable[[], Awaitable[object]]


class Leds(DevicePlugin):
    """Goes through its steps: a list is yielded, an error raised, anything else awaited. It begins where it failed."""

    resource = "example.com/led"

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps)
        self.errors: list[tuple[str, str]] = []
        self.closed = 0
        self._failed = anyio.Event()

    async def devices(self) -> AsyncIterator[Sequence[PluginDevice]]:
        try:
            while self.steps:
                match self.steps.pop(0):
                    case Exception() as e:
                        raise e
                    case list() as devices:
                        yield devices
                    case wait:
                        await wait()  # type: ignore[operator]
        finally:
            self.closed += 1

    async def allocate(self, ids: Sequence[str]) -> Grant:
        if "broken" in ids:
            raise RuntimeError("it is broken")
        return Grant(env={"LEDS": ",".join(ids)})

    def error(self, error: Exception, doing: str) -> None:
        self.errors.append((str(error), doing))
        self._failed.set()
        self._failed = anyio.Event()

    async def failed(self, times: int) -> None:
        while len(self.errors) < times:
            await self._failed.wait()


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def leds(*ids: str) -> list[PluginDevice]:
    return [PluginDevice(id) for id in ids]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@asynccontextmanager
async def client(root: Path, plugin: DevicePlugin, clock: FakeClock) -> AsyncIterator[Client]:
    async with running(partial(plugin.run, PluginOptions(root), clock)):
        async with connected(Offer(ResourceName(plugin.resource), root / "example.com_led.sock")) as connection:
            yield connection


async def ids(lists: Any) -> list[str]:
    return [device.id for device in await anext(lists)]


async def test_a_list_that_is_the_last_word_stays(root: Path, clock: FakeClock) -> None:
    plugin = Leds(leds("red"), leds("red", "green"))
    async with client(root, plugin, clock) as node:
        for _ in range(2):
            lists = node.devices()
            assert await ids(lists) == ["red", "green"]
            await lists.aclose()
    assert plugin.errors == [] and plugin.closed == 1


async def test_nothing_is_served_before_the_devices_are_known(root: Path, clock: FakeClock) -> None:
    gate = anyio.Event()
    plugin = Leds(gate.wait, leds("red"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(plugin.run, PluginOptions(root), clock))
        await anyio.wait_all_tasks_blocked()
        assert files(root) == []
        gate.set()
        async with connected(Offer(ResourceName(plugin.resource), root / "example.com_led.sock")):
            tasks.cancel_scope.cancel()


async def test_it_is_set_up_before_it_is_asked_and_has_a_directory_of_its_own(root: Path, clock: FakeClock) -> None:
    class Careful(Leds):
        async def setup(self, options: PluginOptions) -> None:
            self.steps = [leds(options.data(self.resource).name)]
            assert options.data(self.resource).parent == root.parent / "plugins"

    async with client(root, Careful(), clock) as node:
        assert await ids(node.devices()) == ["example.com_led"]


async def test_after_an_error_the_last_list_stays_and_the_question_is_asked_again(root: Path, clock: FakeClock) -> None:
    plugin = Leds(leds("red"), OSError("bus is off"), OSError("still off"), leds("green"))
    async with client(root, plugin, clock) as node:
        lists = node.devices()
        assert await ids(lists) == ["red"]
        for times in (1, 2):
            await plugin.failed(times)
            await clock.sleeping(1)
            await clock.advance(clock.wakes_at[0] - clock.monotonic())
        assert await ids(lists) == ["green"]
        await lists.aclose()
    doing = "devices not listed, the last list stays"
    assert plugin.errors == [("bus is off", doing), ("still off", doing)]
    assert plugin.closed == 3


@pytest.mark.spec("DP-9.19")
@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (leds("a", "a"), "two devices have the id 'a'"),
        (leds(""), "a device has the id ''"),
        (leds("x" * 64), "at most 63 are allowed"),
    ],
)
async def test_a_wrong_list_is_reported_and_never_sent(
    root: Path, clock: FakeClock, wrong: list[PluginDevice], problem: str
) -> None:
    plugin = Leds(leds("red"), wrong, leds("green"))
    async with client(root, plugin, clock) as node:
        lists = node.devices()
        assert await ids(lists) == ["red"]
        await plugin.failed(1)
        await clock.sleeping(1)
        await clock.advance(1)
        assert await ids(lists) == ["green"]
        await lists.aclose()
    [(error, _)] = plugin.errors
    assert problem in error


async def test_a_list_that_is_the_same_is_not_sent_again(root: Path, clock: FakeClock) -> None:
    again, other = anyio.Event(), anyio.Event()
    plugin = Leds(leds("red"), again.wait, leds("red"), other.wait, leds("green"))
    async with client(root, plugin, clock) as node:
        lists = node.devices()
        assert await ids(lists) == ["red"]
        again.set()
        await anyio.wait_all_tasks_blocked()
        assert plugin.steps == [leds("green")]
        other.set()
        assert await ids(lists) == ["green"]
        await lists.aclose()


async def test_a_generator_without_a_list_is_told_to_yield_an_empty_one(root: Path, clock: FakeClock) -> None:
    plugin = Leds()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(plugin.run, PluginOptions(root), clock))
        await plugin.failed(1)
        plugin.steps.append([])
        await clock.sleeping(1)
        await clock.advance(1)
        async with connected(Offer(ResourceName(plugin.resource), root / "example.com_led.sock")) as node:
            lists = node.devices()
            assert await ids(lists) == []
            await lists.aclose()
        tasks.cancel_scope.cancel()
    assert plugin.errors[0][0] == "Leds.devices() ended without a list: yield [] if there are none"


async def test_an_exception_of_the_plugin_is_the_answer_and_nothing_else_suffers(root: Path, clock: FakeClock) -> None:
    async with client(root, Leds(leds("red", "broken")), clock) as node:
        with pytest.raises(DevletError, match="Allocate failed: RuntimeError: it is broken"):
            await node.allocate([DeviceID("broken")])
        assert (await node.allocate([DeviceID("red")])).env == {"LEDS": "red"}


@pytest.mark.parametrize("resource", ["led", "kubernetes.io/led"])
async def test_a_resource_that_cannot_be_registered_is_refused_at_once(root: Path, resource: str) -> None:
    plugin = Leds(leds("red"))
    plugin.resource = resource
    with pytest.raises(InvalidInput, match="is not the name of an extended resource"):
        await plugin.run(PluginOptions(root))
    assert plugin.closed == 0 and files(root) == []


@pytest.mark.parametrize("name", ["a/b.sock", ".led.sock", "kubelet.sock"])
async def test_a_socket_has_a_file_name_of_its_own(root: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=f"'{name}' cannot be the name of the socket of example.com/led"):
        await Leds().run(PluginOptions(root, socket=name))


async def test_a_second_instance_on_the_same_socket_is_refused(root: Path, clock: FakeClock) -> None:
    async with running(partial(Leds(leds("red")).run, PluginOptions(root), clock)):
        with pytest.raises(ExceptionGroup) as refused:
            await Leds(leds("red")).run(PluginOptions(root), clock)
    assert refused.group_contains(InUse, match="is served by another process")


async def test_a_plugin_that_has_ended_may_run_again(root: Path, clock: FakeClock) -> None:
    plugin = Leds()
    for id in ("red", "green"):
        plugin.steps.append(leds(id))
        async with client(root, plugin, clock) as node:
            lists = node.devices()
            assert await ids(lists) == [id]
            await lists.aclose()
        assert files(root) == []


async def test_streams_do_not_hold_up_the_end(root: Path, clock: FakeClock) -> None:
    async with connected_for_ever(root, Leds(leds("red")), clock) as ended:
        pass
    assert ended == ["ListAndWatch ended: the plugin closed the stream"]


@asynccontextmanager
async def connected_for_ever(root: Path, plugin: Leds, clock: FakeClock) -> AsyncIterator[list[str]]:
    """A node that follows the list, and hears why it ends; the plugin ends with the block."""
    ended: list[str] = []
    async with anyio.create_task_group() as tasks:
        async with running(partial(plugin.run, PluginOptions(root), clock)):

            async def node(*, task_status: anyio.abc.TaskStatus[None]) -> None:
                offer = Offer(ResourceName(plugin.resource), root / "example.com_led.sock")
                async with connected(offer) as connection:
                    try:
                        async for _ in connection.devices():
                            task_status.started()
                    except DevletError as e:
                        ended.append(str(e).partition(": ")[2])

            await tasks.start(node)
            yield ended


async def test_what_is_not_written_is_named(root: Path) -> None:
    class Nothing(DevicePlugin):
        resource = "example.com/nothing"

    with pytest.raises(NotImplementedError, match="Nothing has no method devices"):
        Nothing().devices()
    with pytest.raises(NotImplementedError, match="Nothing has no method allocate"):
        await Nothing().allocate(["x"])


async def test_a_plugin_whose_error_handler_fails_keeps_running(root: Path, clock: FakeClock) -> None:
    class Careless(Leds):
        def error(self, error: Exception, doing: str) -> None:
            super().error(error, doing)
            raise KeyError(doing)

    plugin = Careless(leds("red"), OSError("bus is off"), leds("green"))
    async with client(root, plugin, clock) as node:
        lists = node.devices()
        assert await ids(lists) == ["red"]
        await clock.sleeping(1)
        await clock.advance(1)
        assert await ids(lists) == ["green"]
        await lists.aclose()


async def test_a_plugin_without_a_list_for_long_is_warned_that_it_is_not_registered(
    root: Path, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(Leds(anyio.sleep_forever).run, PluginOptions(root), clock))
        await clock.sleeping(1)
        await clock.advance(10)
        tasks.cancel_scope.cancel()
    assert "devices() has not yielded a list yet: nothing is registered before the first one" in caplog.messages


async def test_without_a_preference_none_is_returned_and_a_start_changes_nothing() -> None:
    plugin = Leds()
    assert await plugin.prefer(["a"], [], 1) == ()
    await plugin.pre_start(["a"])


@pytest.mark.parametrize(("error", "traced"), [(InvalidInput("no such bus"), False), (OSError("no such bus"), True)])
def test_an_error_is_logged_unless_the_author_does_something_else(
    error: Exception, traced: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        DevicePlugin.error(Leds(), error, "devices not listed")
    [record] = caplog.records
    assert (record.message, record.__dict__["facts"]["resourceName"]) == ("devices not listed", "example.com/led")
    assert bool(record.exc_info) is traced


def test_the_program_is_run_with_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[object] = []
    monkeypatch.setattr("devlet.sdk.program.run_plugin", lambda plugin, argv: ran.append((plugin, argv)))
    plugin = Leds()
    plugin.main(["-v", "1"])
    assert ran == [(plugin, ["-v", "1"])]
