"""`devlet sanity`: drive a driver as a kubelet would, and say where it breaks the contract."""

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

from devlet.cli.options import duration
from devlet.cli.terminal import own
from devlet.errors import DevletError
from devlet.kit import orphans
from devlet.kit.parts import running
from devlet.sanity.check import Check
from devlet.sanity.driver import Command, check_words
from devlet.sanity.progress import Progress
from devlet.sanity.report import NOT_RUN, Report
from devlet.sanity.reports import FORMATS
from devlet.sanity.rig_device_plugin import Places, Settings
from devlet.sanity.runner import Runner, Stand
from devlet.sanity.selection import chosen
from devlet.sanity.stand_device_plugin import DevicePluginStand

_EXAMPLES = """\b
Examples:
  devlet sanity device-plugin -- ./my-plugin --plugin-directory={device_plugins}
  devlet sanity device-plugin --private-mount --skip 'DP-CHANGE-*' -- ./my-plugin
  devlet sanity device-plugin --attach --device-plugins /var/lib/kubelet/device-plugins
"""
_KUBELET_DIRECTORY = Path("/var/lib/kubelet/device-plugins")
_KUBELET_REGISTRY = Path("/var/lib/kubelet/plugins_registry")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Function = Any


class _Suite(click.Group):
    """Wrong usage is no finding: 1 would say so."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as e:
            click.echo(f"error: {e.format_message()}\nsee: {(e.ctx or ctx).command_path} --help", err=True)
            return NOT_RUN
        except DevletError as e:
            return _not_run(e)


_SUITE_EXAMPLES = """\b
Examples:
  devlet sanity device-plugin -- my-plugin --path {device_plugins}
  devlet sanity dra --list
"""


@click.group(cls=_Suite, invoke_without_command=True, epilog=_SUITE_EXAMPLES)
@click.pass_context
def command(context: click.Context) -> None:
    """Check that a driver keeps its contract with Kubernetes.

    Exits with 0 if nothing was found, 1 if something was, 2 if it could not be looked at. A signal ends it with a
    report of what was done so far."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


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
        settings=Settings(start=given["wait"], wait=given["wait"], stop=given["stop_timeout"]),
        keep=given["keep"],
    )
    if cdi_dir:
        stand.cdi_directories = cdi_dir
    check_words([*words, *given["env"], change], Places.below(Path()).words)
    return _run(stand, ALL, given)


_DRA_EXAMPLES = """\b
Examples:
  devlet sanity dra -- ./my-driver --kubeconfig={kubeconfig} --node-name={node} --cdi-root={cdi} \\
      --kubelet-registrar-directory-path={registry} --kubelet-plugins-directory-path={plugins}
  devlet sanity dra --config parameters.yaml -- ./my-driver --kubelet-root={root} --pod-uid={instance} ...
  devlet sanity dra --attach --kubeconfig ~/.kube/config --node n1 --only 'DRA-REG-*'
"""


@command.command("dra", epilog=_DRA_EXAMPLES, context_settings={"allow_interspersed_args": False})
@run_options
@click.option("--config", "config", metavar="FILE", type=click.Path(path_type=Path), help="Parameters that it takes.")
@click.option("--second", metavar="COMMAND", default="", help="A second instance; without: the same, with {instance}.")
@click.option("--attach", is_flag=True, help="To a driver that runs, in --registry; nothing is started.")
@click.option("--registry", metavar="DIR", type=click.Path(path_type=Path), help="With --attach: plugins_registry.")
@click.option("--kubeconfig", metavar="FILE", type=click.Path(path_type=Path), help="With --attach: its cluster.")
@click.option("--node", metavar="NAME", default="sanity-node", help="The node's name; with --attach: its own.")
@click.option("--private-mount", is_flag=True, help="For it /var/lib/kubelet is {root}; as in devlet exec.")
@click.option("--change", metavar="COMMAND", default="", help="What makes its devices change, each time.")
@click.option("--repair", metavar="TIME", default="100s", callback=duration, help="How long slices may be missing.")
@click.option("--cdi-dir", metavar="DIR", type=click.Path(path_type=Path), multiple=True, help="Where CDI specs are.")
@click.argument("words", metavar="[-- COMMAND [ARGUMENT]...]", nargs=-1, type=click.UNPROCESSED)
def dra(
    words: tuple[str, ...],
    config: Path | None,
    second: str,
    attach: bool,
    registry: Path | None,
    kubeconfig: Path | None,
    node: str,
    private_mount: bool,
    change: str,
    repair: float,
    cdi_dir: tuple[Path, ...],
    **given: Any,
) -> int:
    """Check a DRA driver, which is started again and again, with an API server of its own.

    In the command, in --second, --env and --change these words stand for what the driver gets: {root}, {registry},
    {plugins}, {cdi}, {kubeconfig}, {node}, {instance}."""
    from devlet.sanity import rig_dra
    from devlet.sanity.checks.dra import ALL
    from devlet.sanity.stand_dra import DraStand

    if given["listing"]:
        return _print_checks(ALL)
    if bool(words) == attach:
        raise click.UsageError("say which driver: devlet sanity dra -- COMMAND, or --attach")
    if attach and not kubeconfig:
        raise click.UsageError("--attach needs --kubeconfig: claims are made in the driver's cluster")
    stand = DraStand(
        None if attach else Command(words, _environment(given["env"]), private_mount),
        second=second,
        registry=(registry or _KUBELET_REGISTRY) if attach else None,
        kubeconfig=kubeconfig if attach else None,
        node=node,
        change_command=change,
        configs=_parameters(config) if config else (),
        settings=rig_dra.Settings(start=given["wait"], wait=given["wait"], stop=given["stop_timeout"], repair=repair),
        keep=given["keep"],
    )
    if cdi_dir:
        stand.cdi_directories = cdi_dir
    known = [*rig_dra.DraPlaces.below(Path(), node).words, "instance"]
    check_words([*words, *given["env"], change, second], known)
    return _run(stand, ALL, given)


def _parameters(path: Path) -> list[dict[str, Any]]:
    """What stands in `opaque.parameters`: an object of YAML or JSON, or several."""
    import yaml

    try:
        found = [each for each in yaml.safe_load_all(path.read_text()) if each is not None]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise click.UsageError(f"--config {path}: {e}") from e
    if not found or not all(isinstance(each, dict) for each in found):
        raise click.UsageError(f"--config {path}: expected parameters, as in the field opaque.parameters of a claim")
    return found


def _run(stand: Stand[Any], checks: Sequence[Check[Any]], given: dict[str, Any]) -> int:
    logging.getLogger("devlet").addHandler(logging.NullHandler())  # or lines of our own parts get among the results
    files = [_file(text) for text in given["reports"]]
    seed = SystemRandom().randrange(1 << 31) if given["seed"] is None else given["seed"]
    quiet = given["output"] != "text"
    _bear_any_text(sys.stderr)
    _bear_any_text(sys.stdout, "utf-8" if quiet else None)
    try:
        wanted = chosen(checks, given["only"], given["skip"])
        with orphans.adopting():  # whatever a driver starts ends with it
            report = anyio.run(_interruptible, Runner(stand, _progress(err=quiet), seed), wanted)
    except (DevletError, BaseExceptionGroup) as e:
        return _not_run(e)
    is_written = _write(report, given["output"], files)
    if report.interrupted:
        return 128 + signal.Signals[report.interrupted]
    return report.exit_code(strict=given["strict"]) or (0 if is_written else NOT_RUN)


async def _interruptible(runner: Runner[Any], wanted: Sequence[Check[Any]]) -> Report:
    """The first signal ends the run in good order; the next one has its usual effect."""

    async def listen(*, task_status: TaskStatus[None]) -> None:
        heeded = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]  # as with nohup
        with anyio.open_signal_receiver(*heeded) as signals:
            task_status.started()
            async for number in signals:
                return runner.interrupt(number.name)

    async with running(listen):
        return await runner.run(wanted)


def _bear_any_text(stream: Any, encoding: str | None = None) -> None:
    """Drivers write anything, and the locale may have no characters for it."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(encoding=encoding, errors="backslashreplace")


def _write(report: Report, output: str, files: Sequence[tuple[str, Path]]) -> bool:
    """Whether all of it could be written."""
    is_written = True
    for form, path in files:
        try:
            path.write_text(FORMATS[form](report), encoding="utf-8", errors="backslashreplace")
        except OSError as e:
            click.echo(f"error: --report {form}={path}: {e.strerror}", err=True)
            is_written = False
    end = f"seed {report.seed}; run with --seed {report.seed} to do the same again\n" if output == "text" else ""
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


def _print_checks(checks: Sequence[Check[Any]]) -> int:
    for check in checks:
        click.echo(f"{check.id:<12} {check.title}\n{'':13}{check.rule}")
    return 0


def _environment(texts: Sequence[str]) -> dict[str, str]:
    """As docker takes them: a name alone means the value that it has here."""
    pairs = [text.partition("=") for text in texts]
    return {name: value if equals else os.environ.get(name, "") for name, equals, value in pairs}


def _file(text: str) -> tuple[str, Path]:
    form, _, path = text.partition("=")
    if form not in FORMATS or not path:
        raise click.UsageError(f"--report {text}: expected one of {', '.join(sorted(FORMATS))}, = and a file")
    try:
        _try_to_write(Path(path))
    except OSError as e:
        raise click.UsageError(f"--report {text}: {e.strerror}") from e
    return form, Path(path)


def _try_to_write(path: Path) -> None:
    """OSError if it cannot be done. Nothing changes."""
    if path.exists() and not path.is_file() and not path.is_dir():
        return  # a pipe, or a device: opening it may have an effect
    was_there = path.exists()
    path.open("ab").close()
    if not was_there:
        path.unlink()


def _not_run(error: BaseException) -> int:
    """An error that is not ours passes: it is a bug. So does that nobody reads any more."""
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
