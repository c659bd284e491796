"""With a small server in the place of the program, which shows the commands it got. The real one is in tests/peers."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from anyio.abc import SocketStream

from devlet.errors import InvalidInput, Unavailable
from devlet.kit.processes import process
from tests.support.peers.hooked_driver import AFTER, Call, HookedDriver, Method, Part, PreparedClaim

pytestmark = pytest.mark.anyio


class Program:
    """Answers each command with what `answers` has for it, and null otherwise."""

    def __init__(self) -> None:
        self.commands: list[dict[str, Any]] = []
        self.answers: dict[str, bytes] = {}
        self.hangs = False

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            command = msgspec.json.decode(await stream.receive())
            self.commands.append(command)
            if self.hangs:
                await anyio.sleep_forever()
            await stream.send(self.answers.get(command["do"], b'{"value":null}\n'))


@pytest.fixture
async def program(root: Path) -> AsyncIterator[Program]:
    program = Program()
    async with await anyio.create_unix_listener(root / "control") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, program.serve)
        yield program
        tasks.cancel_scope.cancel()


@pytest.fixture
async def driver(root: Path) -> AsyncIterator[HookedDriver]:
    async with process(["sleep", "60"], log=root / "log") as running:
        yield HookedDriver(running, root / "control")


COMMANDS: list[tuple[Callable[[HookedDriver], Awaitable[None]], dict[str, str]]] = [
    (lambda d: d.block(Method.PREPARE), {"do": "block", "method": "NodePrepareResources"}),
    (lambda d: d.unblock(Method.UNPREPARE), {"do": "unblock", "method": "NodeUnprepareResources"}),
    (lambda d: d.fail(Method.GET_INFO), {"do": "fail", "method": "GetInfo"}),
    (lambda d: d.unfail(Method.NOTIFY), {"do": "unfail", "method": "NotifyRegistrationStatus"}),
    (lambda d: d.hold(Method.PREPARE, AFTER), {"do": "hold", "method": "NodePrepareResources", "stage": "after"}),
    (lambda d: d.release(Method.PREPARE), {"do": "release", "method": "NodePrepareResources"}),
    (
        lambda d: d.refuse(Method.WATCH_HEALTH, "INTERNAL", "no"),
        {"do": "refuse", "method": "NodeWatchResources", "code": "INTERNAL", "message": "no"},
    ),
    (lambda d: d.accept(Method.WATCH_HEALTH), {"do": "accept", "method": "NodeWatchResources"}),
    (lambda d: d.forget_calls(), {"do": "forget"}),
    (
        lambda d: d.set_health("p", "d", "Healthy"),
        {"do": "health", "pool": "p", "device": "d", "health": "Healthy", "message": ""},
    ),
    (lambda d: d.stop(Part.REGISTRAR), {"do": "stop", "part": "registrar"}),
    (lambda d: d.start(Part.SERVICE), {"do": "start", "part": "service"}),
]


@pytest.mark.parametrize(("act", "command"), COMMANDS, ids=[command["do"] for _, command in COMMANDS])
async def test_each_command_is_one_line(
    program: Program, driver: HookedDriver, act: Callable[[HookedDriver], Awaitable[None]], command: dict[str, str]
) -> None:
    await act(driver)
    assert program.commands == [command]


async def test_without_a_part_all_of_it_stops(program: Program, driver: HookedDriver) -> None:
    await driver.stop()
    assert [command["part"] for command in program.commands] == ["service", "registrar"]


async def test_calls_of_one_method_are_those_of_all_its_versions(program: Program, driver: HookedDriver) -> None:
    made = [
        Call(method, "done", {"claims": []}, None, "OK", "")
        for method in ("/v1.DRAPlugin/NodePrepareResources", "/v1beta1.DRAPlugin/NodePrepareResources", "/r/GetInfo")
    ]
    program.answers["calls"] = msgspec.json.encode({"value": made}) + b"\n"
    assert await driver.calls(Method.PREPARE) == made[:2]
    assert await driver.calls() == made


async def test_prepared_claims_are_sorted(program: Program, driver: HookedDriver) -> None:
    program.answers["prepared"] = b'{"value":[{"name":"b","uid":"2"},{"name":"a","uid":"1"}]}\n'
    assert await driver.prepared() == [PreparedClaim("a", "1"), PreparedClaim("b", "2")]


async def test_a_driver_is_registered_when_it_says_so(program: Program, driver: HookedDriver) -> None:
    program.answers["registered"] = b'{"value":true}\n'
    assert await driver.is_registered() is True


async def test_what_the_program_refuses_is_said(program: Program, driver: HookedDriver) -> None:
    program.answers["block"] = b'{"value":null,"error":"no such hook"}\n'
    with pytest.raises(InvalidInput, match=r"^sleep: block: no such hook$"):
        await driver.block(Method.GET_INFO)


async def test_an_answer_that_is_cut_off_is_none(program: Program, driver: HookedDriver) -> None:
    program.answers["calls"] = b'{"value":['
    with pytest.raises(Unavailable, match="sleep does not answer on "):
        await driver.calls()


async def test_a_program_that_hangs_is_given_up(program: Program, driver: HookedDriver, root: Path) -> None:
    program.hangs = True
    with pytest.raises(Unavailable, match="has it ended"):
        await HookedDriver(driver.process, root / "control", timeout=0.05).calls()


async def test_a_program_that_is_not_there_does_not_answer(driver: HookedDriver, root: Path) -> None:
    with pytest.raises(Unavailable, match=f"does not answer on {root}/control; has it ended"):
        await driver.calls()
