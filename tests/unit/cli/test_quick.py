import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cli import commands, get, options
from devlet.cli.getting import Request
from devlet.cli.main import KUBECTL_PLUGIN, PROGRAM
from devlet.cli.quick import Command, parse
from devlet.cli.target import Target


def through_click(arguments: list[str], program: str) -> Command:
    """What the command would have been asked to do."""
    seen: list[Any] = []

    class Recorded:
        def __init__(self, target: Target) -> None:
            self.target = target

        def close(self) -> None:
            pass

    def record(session: Recorded, namespace: str, request: Request) -> None:
        seen.append(Command(session.target, namespace, request))

    with patch.object(options, "connect", Recorded), patch.object(get, "get", record):
        commands.cli.main(arguments, prog_name=program, standalone_mode=False)
    [command] = seen
    assert isinstance(command, Command)
    return command


WORD = st.sampled_from(["pods", "pod/a", "a", "get", "x=y"])
SHARED = st.sampled_from(
    [
        ["-n", "team"],
        ["-n=team"],
        ["-nteam"],
        ["--namespace=x"],
        ["--root", "/r"],
        ["--kubeconfig=/k"],
        ["--context", "c"],
    ]
)
OWN = st.sampled_from(
    [
        ["-o", "wide"],
        ["-ojson"],
        ["-o=yaml"],
        ["--output=name"],
        ["-A"],
        ["-l", "a=b"],
        ["-l=a"],
        ["--selector", "c"],
        ["--no-headers"],
        ["--show-labels"],
        ["--all-namespaces"],
        ["--field-selector=a=b"],
    ]
)
ODD = st.sampled_from(
    [
        ["-w"],
        ["--"],
        ["-o"],
        ["-o="],
        ["-n", "-A"],
        ["--wide"],
        ["-Aw"],
        ["--no-headers=false"],
        ["--root="],
        ["-h"],
        [""],
        ["-"],
    ]
)


@given(
    st.lists(SHARED, max_size=2),
    st.lists(SHARED | OWN | WORD.map(lambda w: [w]), max_size=5),
    st.sampled_from([PROGRAM, KUBECTL_PLUGIN]),
)
def test_what_is_understood_is_understood_as_click_does(
    before: list[list[str]], after: list[list[str]], program: str
) -> None:
    arguments = [*chain(*before), "get", *chain(*after)]
    found = parse(arguments, program)
    if found is not None:
        assert found == through_click(arguments, program)
    else:
        flags = [a[:3] for a in arguments if a.startswith("-")]
        assert len(flags) > 1, "only a flag given twice is left to click"


@given(
    st.lists(SHARED | OWN | WORD.map(lambda w: [w]), max_size=3),
    ODD,
    st.lists(OWN | WORD.map(lambda w: [w]), max_size=3),
)
def test_anything_else_is_left_to_click(before: list[list[str]], odd: list[str], after: list[list[str]]) -> None:
    assert parse(["get", *chain(*before), *odd, *chain(*after)], PROGRAM) is None or odd in (["-o"], ["-n", "-A"])


@pytest.mark.parametrize(
    "arguments", [[], ["version"], ["describe", "get"], ["-A", "get", "pods"], ["-o", "json", "get"], ["get", "-o"]]
)
def test_other_commands_are_left_to_click(arguments: list[str]) -> None:
    assert parse(arguments, PROGRAM) is None


def test_the_target_is_what_the_flags_say() -> None:
    command = parse(["--root", "/r", "get", "pods", "-o", "wide", "-A"], KUBECTL_PLUGIN)
    assert command is not None
    assert command.target == Target(root=Path("/r"), of_kubectl=True)
    assert command.request == Request(arguments=("pods",), output="wide", all_namespaces=True)


def test_a_simple_get_imports_little() -> None:
    code = "import sys; from devlet.cli.main import run; run(['get', 'pods', '--root', '/nope']); print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(output.splitlines()[-1].split())
    assert "devlet.cli.getting" in loaded
    heavy = {
        "click",
        "http.client",
        "email",
        "ssl",
        "msgspec",
        "yaml",
        "rich",
        "anyio",
        "asyncio",
        "logging",
        "aiohttp",
    }
    assert not loaded & heavy
