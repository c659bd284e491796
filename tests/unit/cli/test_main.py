import subprocess
import sys

import click
import pytest

from devlet.cli import commands, main
from devlet.errors import InvalidInput


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> None:
    """`devlet test WHAT` raises what it is told to."""

    @click.command()
    @click.argument("what")
    def test(what: str) -> None:
        no_disk = InvalidInput("no disk")
        raise {
            "ours": no_disk,
            "group": ExceptionGroup(
                "", [ExceptionGroup("", [no_disk, InvalidInput("no port")]), InvalidInput("no disk")]
            ),
            "interrupted": KeyboardInterrupt(),
            "interrupted-group": BaseExceptionGroup("", [KeyboardInterrupt(), no_disk]),
            "bug": ZeroDivisionError("oh"),
            "bug-in-group": ExceptionGroup("", [ZeroDivisionError("oh"), no_disk]),
            "bug-of-a-part": ExceptionGroup("", [ExceptionGroup("", [ZeroDivisionError("oh")])]),
        }[what]

    monkeypatch.setattr(commands.cli, "get_command", lambda context, name: test if name == "test" else None)


@pytest.mark.usefixtures("command")
@pytest.mark.parametrize(
    ("what", "code", "printed"),
    [
        ("ours", 1, "error: no disk\n"),
        ("group", 1, "error: no disk\nerror: no port\n"),
        ("interrupted", 130, "\n"),
        ("interrupted-group", 130, ""),
    ],
)
def test_errors_are_printed_once_and_give_the_exit_code(
    what: str, code: int, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["test", what]) == code
    assert capsys.readouterr() == ("", printed)


@pytest.mark.usefixtures("command")
@pytest.mark.parametrize("what", ["bug", "bug-in-group"])
def test_a_bug_looks_like_one(what: str) -> None:
    with pytest.raises((ZeroDivisionError, ExceptionGroup)):
        main.run(["test", what])


@pytest.mark.usefixtures("command")
def test_a_bug_in_a_nested_part_is_shown_by_itself() -> None:
    """Python cuts off groups that are nested deeply, and with them the place of the bug."""
    with pytest.raises(ZeroDivisionError):
        main.run(["test", "bug-of-a-part"])


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["nonsense"], 'error: unknown command "nonsense"\n'),
        (["gte"], 'error: unknown command "gte"; did you mean "get"?\n'),
        (["up", "--nonsense"], "error: No such option '--nonsense'"),
        (["version", "-o", "xml"], "error: Invalid value for '-o' / '--output'"),
        (["up", "surplus"], "error: Got unexpected extra argument (surplus)"),
    ],
)
def test_usage_errors_exit_1_and_say_where_help_is(
    arguments: list[str], printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(arguments) == 1
    errors = capsys.readouterr().err
    assert errors.startswith(printed)
    assert "--help" in errors.splitlines()[-1]


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_help_lists_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(arguments) == 0
    help = capsys.readouterr().out
    assert all(f"  {name} " in help for name in commands.COMMANDS)


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_every_command_answers_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([name, "--help"]) == 0
    assert f"\n    devlet {name}" in capsys.readouterr().out


def test_a_closed_pipe_prints_no_traceback() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "devlet", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1


def test_a_full_disk_prints_no_traceback() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "devlet", "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, "error: standard output: No space left on device\n")


def test_choosing_a_command_imports_little() -> None:
    code = "import sys; from devlet.cli.main import run; run(['version']); print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(output.splitlines()[-1].split())
    assert "click" in loaded
    assert not loaded & {"anyio", "asyncio", "msgspec", "rich", "yaml", "logging", "devlet.objects.documents"}
