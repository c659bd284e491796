"""`devlet sanity`: call a driver as a kubelet would, and report where it breaks its contract."""

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
    """A group whose errors exit with 2, because 1 means that the driver failed a check."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as e:
            click.echo(f"error: {e.format_message()}\nSee '{(e.ctx or ctx).command_path} --help' for usage.", err=True)
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

    The exit code is 0 if all checks pass, 1 if there are findings, and 2 if the checks could not be run. After SIGINT
    or SIGTERM, the run ends with a report of the checks that have finished."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


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

_private_mount_option = click.option(
    "--private-mount", is_flag=True, help="Map /var/lib/kubelet to {root} for the driver, as `devlet exec` does."
)
_change_option = click.option(
    "--change", metavar="COMMAND", default="", help="Shell command that changes the driver's devices."
)
_cdi_option = click.option(
    "--cdi-dir",
    metavar="DIR",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Look for CDI specs in DIR as well as in {cdi}; may be repeated. [default: /etc/cdi, /var/run/cdi]",
)


@command.command("device-plugin", epilog=_EXAMPLES, context_settings={"allow_interspersed_args": False})
@run_options
@click.option("--attach", is_flag=True, help="Check a running plugin in --device-plugins instead of starting one.")
@click.option(
    "--device-plugins",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="With --attach, the directory where the plugin registers. [default: the kubelet's]",
)
@click.option(
    "--registry",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="With --attach, the plugins_registry directory of a plugin that waits there to be found.",
)
@_private_mount_option
@_change_option
@_cdi_option
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
    """Check a device plugin, which is started and stopped repeatedly.

    In COMMAND, --env and --change, these placeholders are replaced with paths that only this plugin uses: {root},
    {device_plugins}, {kubelet_sock}, {registry}, {cdi}."""
    from devlet.sanity.checks.device_plugin import ALL

    if given["listing"]:
        return _print_checks(ALL)
    if bool(words) == attach:
        raise click.UsageError("give either the command that starts the plugin, after --, or --attach")
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
@click.option(
    "--config",
    "config",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Put the parameters in FILE, YAML or JSON, into opaque.parameters of claims.",
)
@click.option(
    "--second",
    metavar="COMMAND",
    default="",
    help="Start a second instance with COMMAND. [default: the first instance's command, if it contains {instance}]",
)
@click.option("--attach", is_flag=True, help="Check a running driver in --registry instead of starting one.")
@click.option(
    "--registry",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="With --attach, the directory where the driver registers. [default: the kubelet's]",
)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="With --attach, the kubeconfig of the driver's cluster.",
)
@click.option(
    "--node",
    metavar="NAME",
    default="sanity-node",
    help="Name of the node; with --attach, the driver's node. [default: sanity-node]",
)
@_private_mount_option
@_change_option
@click.option(
    "--repair",
    metavar="TIME",
    default="100s",
    callback=duration,
    help="Time for the driver to restore a deleted slice. [default: 100s]",
)
@_cdi_option
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
    """Check a DRA driver, which is started and stopped repeatedly, with an API server of its own.

    In COMMAND, --second, --env and --change, these placeholders are replaced with values for this driver: {root},
    {registry}, {plugins}, {cdi}, {kubeconfig}, {node}, {instance}."""
    from devlet.sanity import rig_dra
    from devlet.sanity.checks.dra import ALL
    from devlet.sanity.stand_dra import DraStand

    if given["listing"]:
        return _print_checks(ALL)
    if bool(words) == attach:
        raise click.UsageError("give either the command that starts the driver, after --, or --attach")
    if attach and not kubeconfig:
        raise click.UsageError("--attach needs --kubeconfig, because claims are created in the driver's cluster")
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
    """Read the values for `opaque.parameters` of claims: one or several objects in YAML or JSON."""
    import yaml

    try:
        found = [each for each in yaml.safe_load_all(path.read_text()) if each is not None]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise click.UsageError(f"--config {path}: {e}") from e
    if not found or not all(isinstance(each, dict) for each in found):
        raise click.UsageError(f"--config {path}: expected objects, as in the field opaque.parameters of a claim")
    return found


def _run(stand: Stand[Any], checks: Sequence[Check[Any]], given: dict[str, Any]) -> int:
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
        return _not_run(e)
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


def _print_checks(checks: Sequence[Check[Any]]) -> int:
    for check in checks:
        click.echo(f"{check.id:<12} {check.title}\n{'':13}{check.rule}")
    return 0


def _environment(texts: Sequence[str]) -> dict[str, str]:
    """Parse `--env` as docker does: a name alone takes its value from our own environment."""
    pairs = [text.partition("=") for text in texts]
    return {name: value if equals else os.environ.get(name, "") for name, equals, value in pairs}


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


def _not_run(error: BaseException) -> int:
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
