"""`devlet sanity`: drive a driver as a kubelet would, and say where it breaks the contract."""

import logging
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom
from typing import Any

import anyio
import click

from devlet.cli.options import duration
from devlet.errors import DevletError
from devlet.sanity.check import Check
from devlet.sanity.driver import Command
from devlet.sanity.progress import Progress
from devlet.sanity.report import NOT_RUN, Report
from devlet.sanity.reports import FORMATS
from devlet.sanity.rig_device_plugin import DevicePluginStand, Settings
from devlet.sanity.runner import Runner, Stand
from devlet.sanity.selection import chosen

_EXAMPLES = """\b
Examples:
  devlet sanity device-plugin -- ./my-plugin --plugin-directory={device_plugins}
  devlet sanity device-plugin --private-mount --skip 'DP-CHANGE-*' -- ./my-plugin
  devlet sanity device-plugin --attach --device-plugins /var/lib/kubelet/device-plugins
"""
_KUBELET_DIRECTORY = Path("/var/lib/kubelet/device-plugins")
Function = Any


class _Suite(click.Group):
    """Wrong usage is no finding: 1 would say so."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as e:
            click.echo(f"error: {e.format_message()}\nsee: {(e.ctx or ctx).command_path} --help", err=True)
            return NOT_RUN


@click.group(cls=_Suite)
def command() -> None:
    """Check that a driver keeps its contract with Kubernetes.

    Exits with 0 if nothing was found, 1 if something was, 2 if it could not be looked at."""


def run_options(function: Function) -> Function:
    """What every kind of driver has: which checks, how, and where the report goes."""
    for option in reversed(_RUN_OPTIONS):
        function = option(function)
    return function


_RUN_OPTIONS = (
    click.option("--only", metavar="GLOB", multiple=True, help="Run only these checks, by id; may be repeated."),
    click.option("--skip", metavar="GLOB", multiple=True, help="Do not run these checks; may be repeated."),
    click.option("--seed", type=int, help="For what is done by chance; a report says which one it was."),
    click.option("--strict", is_flag=True, help="Warnings are findings too."),
    click.option("--list", "listing", is_flag=True, help="Print the checks and exit."),
    click.option(
        "-o",
        "--output",
        metavar="FORMAT",
        type=click.Choice(sorted(FORMATS)),
        default="text",
        help=f"What to print at the end: {', '.join(sorted(FORMATS))}.",
    ),
    click.option("--report", "reports", metavar="FORMAT=FILE", multiple=True, help="Write a report; may be repeated."),
    click.option("--env", metavar="NAME[=VALUE]", multiple=True, help="An environment variable of the driver."),
    click.option("--wait", metavar="TIME", default="30s", callback=duration, help="How long it may take to register."),
    click.option("--stop-timeout", metavar="TIME", default="30s", callback=duration, help="... and to end."),
    click.option("--keep", metavar="DIR", type=click.Path(path_type=Path), help="Keep its directories and logs here."),
)


@command.command("device-plugin", epilog=_EXAMPLES, context_settings={"allow_interspersed_args": False})
@run_options
@click.option("--attach", is_flag=True, help="To a plugin that runs, on --device-plugins; nothing is started.")
@click.option(
    "--device-plugins", metavar="DIR", type=click.Path(path_type=Path), help="With --attach: where it registers."
)
@click.option("--registry", metavar="DIR", type=click.Path(path_type=Path), help="With --attach: plugins_registry.")
@click.option("--private-mount", is_flag=True, help="For it /var/lib/kubelet is {root}; as in devlet exec.")
@click.option("--change", metavar="COMMAND", default="", help="What makes its devices change, each time.")
@click.option("--cdi-dir", metavar="DIR", type=click.Path(path_type=Path), multiple=True, help="Where CDI specs are.")
@click.argument("words", metavar="[-- COMMAND [ARGUMENT]...]", nargs=-1, type=click.UNPROCESSED)
def device_plugin(
    words: tuple[str, ...],
    attach: bool,
    device_plugins: Path | None,
    registry: Path | None,
    private_mount: bool,
    change: str,
    cdi_dir: tuple[Path, ...],
    **given: Any,
) -> int:
    """Check a device plugin, which is started again and again.

    In the command, in --env and in --change these words stand for directories of the driver's own: {root},
    {device_plugins}, {kubelet_sock}, {registry}, {cdi}."""
    from devlet.sanity.checks.device_plugin import ALL

    if given["listing"]:
        return _print_checks(ALL)
    if bool(words) == attach:
        raise click.UsageError("say which driver: devlet sanity device-plugin -- COMMAND, or --attach")
    stand = DevicePluginStand(
        None if attach else Command(words, _environment(given["env"]), private_mount),
        directory=(device_plugins or _KUBELET_DIRECTORY) if attach else None,
        registry=registry,
        change_command=change,
        settings=Settings(wait=given["wait"], stop=given["stop_timeout"]),
        keep=given["keep"],
    )
    if cdi_dir:
        stand.cdi_directories = cdi_dir
    return _run(stand, ALL, given)


def _run(stand: Stand[Any], checks: Sequence[Check[Any]], given: dict[str, Any]) -> int:
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # or its lines about drivers that go get among ours
    logging.getLogger("devlet").addHandler(logging.NullHandler())  # the same for our own parts
    files = [_file(text) for text in given["reports"]]
    seed = SystemRandom().randrange(1 << 31) if given["seed"] is None else given["seed"]
    quiet = given["output"] != "text"
    try:
        wanted = chosen(checks, given["only"], given["skip"])
        report = anyio.run(Runner(stand, _progress(err=quiet), seed).run, wanted)
    except (DevletError, BaseExceptionGroup) as e:
        return _not_run(e)
    _write(report, given["output"], files)
    return report.exit_code(strict=given["strict"])


def _write(report: Report, output: str, files: Sequence[tuple[str, Path]]) -> None:
    for form, path in files:
        path.write_text(FORMATS[form](report))
    end = f"seed {report.seed}; run with --seed {report.seed} to do the same again\n" if output == "text" else ""
    click.echo(("\n" if output == "text" else "") + FORMATS[output](report) + end, nl=False)


def _progress(*, err: bool) -> Progress:
    stream = sys.stderr if err else sys.stdout
    live = stream.isatty()

    def write(text: str) -> None:
        stream.write(text)
        stream.flush()

    return Progress(write, live, live and "NO_COLOR" not in os.environ, shutil.get_terminal_size().columns)


def _print_checks(checks: Sequence[Check[Any]]) -> int:
    for check in checks:
        click.echo(f"{check.id:<13}{check.title}\n{'':13}{check.rule}")
    return 0


def _environment(texts: Sequence[str]) -> dict[str, str]:
    """As docker takes them: a name alone means the value that it has here."""
    pairs = [text.partition("=") for text in texts]
    return {name: value if equals else os.environ.get(name, "") for name, equals, value in pairs}


def _file(text: str) -> tuple[str, Path]:
    form, _, path = text.partition("=")
    if form not in FORMATS or not path:
        raise click.UsageError(f"--report {text}: expected one of {', '.join(sorted(FORMATS))}, = and a file")
    return form, Path(path)


def _not_run(error: BaseException) -> int:
    """An error that is not ours passes: it is a bug."""
    leaves = _leaves(error)
    if not all(isinstance(leaf, DevletError) for leaf in leaves):
        raise error
    for leaf in leaves:
        click.echo(f"error: {leaf}", err=True)
    return NOT_RUN


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
