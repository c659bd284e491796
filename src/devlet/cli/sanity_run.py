"""A run of `devlet sanity`: the options that every kind of driver has, and the reports and exit code of the run."""

import logging
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom
from typing import Any

import anyio
import click
from anyio.abc import TaskStatus

from devlet.cli.options import Function, duration
from devlet.cli.terminal import own
from devlet.errors import DevletError
from devlet.kit import orphans
from devlet.kit.parts import running
from devlet.sanity.check import Check
from devlet.sanity.progress import Progress
from devlet.sanity.report import NOT_RUN, Report
from devlet.sanity.reports import FORMATS
from devlet.sanity.runner import Runner, Stand
from devlet.sanity.selection import chosen

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_options(function: Function) -> Function:
    """Add the options that every kind of driver has: which checks to run, how, and where to write the report."""
    for option in reversed(_RUN_OPTIONS):
        function = option(function)
    return function


_RUN_OPTIONS = (
    click.option("--only", metavar="GLOB", multiple=True, help="Run only the checks with these ids; may be repeated."),
    click.option("--skip", metavar="GLOB", multiple=True, help="Skip the checks with these ids; may be repeated."),
    click.option("--seed", type=int, help="Seed for random choices. [default: a random one, shown in the report]"),
    click.option("--strict", is_flag=True, help="Count warnings as findings."),
    click.option("--list", "listing", is_flag=True, help="List the checks and exit."),
    click.option(
        "-o",
        "--output",
        metavar="FORMAT",
        type=click.Choice(sorted(FORMATS)),
        default="text",
        help=f"Format of the report: {', '.join(sorted(FORMATS))}. [default: text]",
    ),
    click.option(
        "--report",
        "reports",
        metavar="FORMAT=FILE",
        multiple=True,
        help="Also write a report to FILE; may be repeated.",
    ),
    click.option(
        "--env",
        metavar="NAME[=VALUE]",
        multiple=True,
        help="Set an environment variable of the driver; may be repeated.",
    ),
    click.option(
        "--wait",
        metavar="TIME",
        default="30s",
        callback=duration,
        help="Time for the driver to register. [default: 30s]",
    ),
    click.option(
        "--stop-timeout",
        metavar="TIME",
        default="30s",
        callback=duration,
        help="Time for the driver to exit. [default: 30s]",
    ),
    click.option(
        "--keep", metavar="DIR", type=click.Path(path_type=Path), help="Keep the driver's directories and logs in DIR."
    ),
)


def print_checks(checks: Sequence[Check[Any]]) -> int:
    for check in checks:
        click.echo(f"{check.id:<12} {check.title}\n{'':13}{check.rule}")
    return 0


def environment(texts: Sequence[str]) -> dict[str, str]:
    """Parse `--env` as docker does: a name alone takes its value from our own environment."""
    pairs = [text.partition("=") for text in texts]
    return {name: value if equals else os.environ.get(name, "") for name, equals, value in pairs}


def run(stand: Stand[Any], checks: Sequence[Check[Any]], given: dict[str, Any]) -> int:
    """Run the checks, and return the exit code. `given` has the values of `run_options`."""
    logging.getLogger("devlet").addHandler(logging.NullHandler())  # keeps our own log lines out of the results
    files = [_file(text) for text in given["reports"]]
    seed = SystemRandom().randrange(1 << 31) if given["seed"] is None else given["seed"]
    quiet = given["output"] != "text"
    _accept_any_text(sys.stderr)
    _accept_any_text(sys.stdout, "utf-8" if quiet else None)
    try:
        wanted = chosen(checks, given["only"], given["skip"])
        with orphans.adopting():  # so that processes started by the driver end with it
            report = anyio.run(_interruptible, Runner(stand, _progress(err=quiet), seed), wanted)
    except (DevletError, BaseExceptionGroup) as e:
        return not_run(e)
    is_written = _write(report, given["output"], files)
    if report.interrupted:
        return 128 + signal.Signals[report.interrupted]
    return report.exit_code(strict=given["strict"]) or (0 if is_written else NOT_RUN)


async def _interruptible(runner: Runner[Any], wanted: Sequence[Check[Any]]) -> Report:
    """Run the checks. The first signal ends the run with a report; the next one has its usual effect."""

    async def listen(*, task_status: TaskStatus[None]) -> None:
        handled = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]  # ignored under nohup
        with anyio.open_signal_receiver(*handled) as signals:
            task_status.started()
            async for number in signals:
                return runner.interrupt(number.name)

    async with running(listen):
        return await runner.run(wanted)


def _accept_any_text(stream: Any, encoding: str | None = None) -> None:
    """Escape what drivers write and the locale cannot represent."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(encoding=encoding, errors="backslashreplace")


def _write(report: Report, output: str, files: Sequence[tuple[str, Path]]) -> bool:
    """Write the reports. Return whether all files could be written."""
    is_written = True
    for form, path in files:
        try:
            path.write_text(FORMATS[form](report), encoding="utf-8", errors="backslashreplace")
        except OSError as e:
            click.echo(f"error: cannot write --report {form}={path}: {e.strerror}", err=True)
            is_written = False
    end = f"seed {report.seed}: repeat this run with --seed {report.seed}\n" if output == "text" else ""
    click.echo(("\n" if output == "text" else "") + FORMATS[output](report) + end, nl=False)
    return is_written


def _progress(*, err: bool) -> Progress:
    stream = sys.stderr if err else sys.stdout
    live = stream.isatty()

    def write(text: str) -> None:
        stream.write(text)
        stream.flush()

    control = own(stream).write
    return Progress(write, control, live, live and "NO_COLOR" not in os.environ, shutil.get_terminal_size().columns)


def _file(text: str) -> tuple[str, Path]:
    form, _, path = text.partition("=")
    if form not in FORMATS or not path:
        raise click.UsageError(f"--report {text}: expected FORMAT=FILE, with one of {', '.join(sorted(FORMATS))}")
    try:
        _try_to_write(Path(path))
    except OSError as e:
        raise click.UsageError(f"--report {text}: {e.strerror}") from e
    return form, Path(path)


def _try_to_write(path: Path) -> None:
    """Raise OSError if the file cannot be written. It is not changed."""
    if path.exists() and not path.is_file() and not path.is_dir():
        return  # opening a pipe or a device may have an effect
    was_there = path.exists()
    path.open("ab").close()
    if not was_there:
        path.unlink()


def not_run(error: BaseException) -> int:
    """Print expected errors. Raise a bug again, and a broken pipe, which `main` handles."""
    leaves = _leaves(error)
    if all(isinstance(leaf, BrokenPipeError) for leaf in leaves):
        raise leaves[0]
    if not all(isinstance(leaf, DevletError) for leaf in leaves):
        raise error
    for leaf in leaves:
        click.echo(f"error: {leaf}", err=True)
    return NOT_RUN


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
