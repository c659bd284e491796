import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest

from devlet.errors import InvalidInput, Unavailable
from devlet.node.devices.release_hooks import Hook, ReleaseHooks, parse
from devlet.node.devices.releases import Release
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.testing.waiting import deadline

GPU = "gpu.example.com/gpu"


def release(*devices: str, resource: str = GPU) -> Release:
    ids = tuple(map(DeviceID, devices or ("a", "b")))
    return Release(ResourceName(resource), ids, PodUID("uid-1"), ContainerName("main"))


class Module(ModuleType):
    """A module of the operator, with functions of any name."""

    def __setattr__(self, name: str, function: Callable[[Release], object]) -> None:
        super().__setattr__(name, function)


@pytest.fixture
def module() -> Iterator[Module]:
    made = sys.modules["operators_hooks"] = Module("operators_hooks")
    yield made
    del sys.modules["operators_hooks"]


@pytest.fixture
def program(root: Path) -> Callable[[str], list[str]]:
    """Write a script and return the command that runs it."""

    def write(script: str) -> list[str]:
        path = root / "hook"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)
        return [str(path), str(root / "out")]

    return write


@pytest.mark.anyio
async def test_a_command_gets_the_release_in_its_environment_and_on_its_input(
    root: Path, program: Callable[[str], list[str]]
) -> None:
    names = '"$DEVLET_RESOURCE $DEVLET_DEVICE_IDS $DEVLET_POD_UID $DEVLET_CONTAINER"'
    await parse([{"resource": GPU, "command": program(f'{{ echo {names}; cat; }} >"$1"')}]).run(release())
    words, message = (root / "out").read_text().splitlines()
    assert words == f"{GPU} a,b uid-1 main"
    assert json.loads(message) == {"resource": GPU, "devices": ["a", "b"], "pod": "uid-1", "container": "main"}


@pytest.mark.anyio
async def test_more_devices_than_fit_into_a_variable_are_passed_in_portions(
    root: Path, program: Callable[[str], list[str]]
) -> None:
    ids = [f"{number:060}" for number in range(5000)]
    command = program('[ ${#DEVLET_DEVICE_IDS} -le 65536 ] && echo "$DEVLET_DEVICE_IDS" >>"$1"')
    await parse([{"resource": GPU, "command": command}]).run(release(*ids))
    lines = (root / "out").read_text().splitlines()
    assert len(lines) == 5
    assert ",".join(lines).split(",") == ids


@pytest.mark.anyio
async def test_a_command_that_fails_is_an_error_that_names_it(program: Callable[[str], list[str]]) -> None:
    command = program("echo device is busy; exit 4")
    with pytest.raises(Unavailable) as error:
        await parse([{"resource": "*", "command": command}]).run(release())
    assert str(error.value) == f"release hook of *: {command[0]} exited with 4: device is busy"


@pytest.mark.anyio
async def test_the_timeout_is_that_of_the_hook_or_the_default(program: Callable[[str], list[str]]) -> None:
    command = program("sleep 600")
    with deadline():
        with pytest.raises(Unavailable, match=r"killed after 0\.05 s"):
            await parse([{"resource": GPU, "command": command, "timeout": "50ms"}]).run(release())
        with pytest.raises(Unavailable, match=r"killed after 0\.06 s"):
            await parse([{"resource": GPU, "command": command}], timeout=0.06).run(release())


@pytest.mark.anyio
async def test_a_function_is_called_in_a_thread_with_the_release(module: Module) -> None:
    calls: list[tuple[Release, bool]] = []
    main = threading.current_thread()
    module.released = lambda given: calls.append((given, threading.current_thread() is main))
    await parse([{"resource": GPU, "python": "operators_hooks:released"}]).run(release())
    assert calls == [(release(), False)]


@pytest.mark.anyio
@pytest.mark.parametrize("error", [OSError("no such bus"), SystemExit(3), StopIteration(), TimeoutError("late")])
async def test_an_exception_of_a_function_is_an_error_that_names_it(module: Module, error: BaseException) -> None:
    def released(given: Release) -> None:
        raise error

    module.released = released
    hooks = parse([{"resource": GPU, "python": "operators_hooks:released"}])
    with pytest.raises(Unavailable) as raised:
        await hooks.run(release())
    assert f"operators_hooks:released raised {type(error).__name__}: {error}" in str(raised.value)


@pytest.mark.anyio
async def test_a_slow_function_is_awaited_again_and_not_called_again(module: Module) -> None:
    calls: list[Release] = []
    gate = threading.Event()

    def released(given: Release) -> None:
        calls.append(given)
        gate.wait(60)

    module.released = released
    hooks = parse([{"resource": GPU, "python": "operators_hooks:released", "timeout": 0.01}])
    for _ in range(3):
        with pytest.raises(Unavailable, match=r"has not returned after 0\.01 s"):
            await hooks.run(release())
    gate.set()
    with deadline():
        while True:
            try:
                await hooks.run(release())
                break
            except Unavailable:
                continue
    assert calls == [release()]
    await hooks.run(release())
    assert calls == [release(), release()]


@pytest.mark.anyio
async def test_hooks_of_the_resource_and_of_all_run_in_order_until_one_fails(module: Module) -> None:
    ran: list[str] = []
    module.first = lambda given: ran.append("first")
    module.other = lambda given: ran.append("other")
    module.broken = lambda given: ran.extend(["broken"] * (1 // 0))
    module.last = lambda given: ran.append("last")
    hooks = parse(
        [
            {"resource": GPU, "python": "operators_hooks:first"},
            {"resource": "other.example.com/x", "python": "operators_hooks:other"},
            {"resource": "*", "python": "operators_hooks:broken"},
            {"resource": GPU, "python": "operators_hooks:last"},
        ]
    )
    with pytest.raises(Unavailable, match="ZeroDivisionError"):
        await hooks.run(release())
    assert ran == ["first"]


@pytest.mark.anyio
async def test_any_exception_in_a_hook_is_a_failure_of_the_hook(module: Module) -> None:
    class Strange(Exception):
        def __str__(self) -> str:
            raise RuntimeError("not even this")

    def released(given: Release) -> None:
        raise Strange

    module.released = released
    hooks = parse([{"resource": "*", "python": "operators_hooks:released"}])
    with pytest.raises(Unavailable, match=r"release hook of \*: RuntimeError"):
        await hooks.run(release())


@pytest.mark.anyio
async def test_without_hooks_nothing_happens() -> None:
    await parse([]).run(release())


@pytest.mark.anyio
async def test_the_number_of_concurrent_hooks_is_limited() -> None:
    running: set[str] = set()
    most: list[int] = []

    class Action:
        async def run(self, given: Release, timeout: float) -> None:
            running.add(given.devices[0])
            most.append(len(running))
            await anyio.wait_all_tasks_blocked()
            running.remove(given.devices[0])

    hooks = ReleaseHooks([Hook("*", Action())], at_once=3)
    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(hooks.run, release(str(number)))
    assert len(most) == 10
    assert max(most) == 3


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ("x", "releaseHooks: Expected `array`"),
        ([{"command": ["/bin/sh"]}], "`resource` - at `releaseHooks[0]`"),
        ([{"resource": GPU, "comand": []}], "`comand` - at `releaseHooks[0]`"),
        ([{"resource": GPU, "command": ["/bin/sh", 1]}], "at `releaseHooks[0].command[1]`"),
        ([{"resource": "gpu", "command": ["/bin/sh"]}], "releaseHooks[0].resource: 'gpu' is neither"),
        ([{"resource": GPU}], "releaseHooks[0]: needs either command or python"),
        ([{"resource": GPU, "command": ["/bin/sh"], "python": "a:b"}], "needs either"),
        ([{"resource": GPU, "command": []}], "releaseHooks[0].command: must begin with the absolute path"),
        ([{"resource": GPU, "command": ["sh"]}], "absolute path"),
        ([{"resource": GPU, "command": ["/absent"]}], "/absent is not a program"),
        ([{"resource": GPU, "command": ["/tmp"]}], "/tmp is not a program"),
        ([{"resource": GPU, "command": ["/bin/sh", "\0"]}], "zero byte"),
        ([{"resource": GPU, "command": ["/bin/sh"] * 257}], "more than 256 words"),
        ([{"resource": GPU, "python": "a.b"}], "releaseHooks[0].python: 'a.b' is not of the form module:function"),
        ([{"resource": GPU, "python": "absent_module:f"}], "absent_module:f cannot be imported: ModuleNotFoundError"),
        ([{"resource": GPU, "python": "os:absent"}], "os:absent cannot be imported: AttributeError"),
        ([{"resource": GPU, "python": "os:sep"}], "os:sep is not a plain function"),
        ([{"resource": GPU, "python": "anyio:sleep"}], "anyio:sleep is not a plain function"),
        ([{"resource": GPU, "command": ["/bin/sh"], "timeout": "soon"}], "releaseHooks[0].timeout: "),
        ([{"resource": GPU, "command": ["/bin/sh"], "timeout": 0}], "at least 1ms"),
        ([{"resource": GPU, "command": ["/bin/sh"]}] * 65, "more than 64"),
    ],
)
def test_invalid_configuration_is_reported_with_its_place(values: Any, problem: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse(values)
    assert problem in str(error.value)
