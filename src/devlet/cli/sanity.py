"""`devlet sanity`: call a driver as a kubelet would, and report where it breaks its contract."""

from pathlib import Path
from typing import Any

import click

from devlet.cli.options import duration
from devlet.cli.sanity_run import environment, not_run, print_checks, run, run_options
from devlet.errors import DevletError
from devlet.sanity.driver import Command, check_words
from devlet.sanity.report import NOT_RUN
from devlet.sanity.rig_device_plugin import Places, Settings
from devlet.sanity.stand_device_plugin import DevicePluginStand

_EXAMPLES = """\b
Examples:
  devlet sanity device-plugin -- ./my-plugin --plugin-directory={device_plugins}
  devlet sanity device-plugin --private-mount --skip 'DP-CHANGE-*' -- ./my-plugin
  devlet sanity device-plugin --attach --device-plugins /var/lib/kubelet/device-plugins
"""
_KUBELET_DIRECTORY = Path("/var/lib/kubelet/device-plugins")
_KUBELET_REGISTRY = Path("/var/lib/kubelet/plugins_registry")


class _Suite(click.Group):
    """A group whose errors exit with 2, because 1 means that the driver failed a check."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as e:
            click.echo(f"error: {e.format_message()}\nSee '{(e.ctx or ctx).command_path} --help' for usage.", err=True)
            return NOT_RUN
        except DevletError as e:
            return not_run(e)


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
        return print_checks(ALL)
    if bool(words) == attach:
        raise click.UsageError("give either the command that starts the plugin, after --, or --attach")
    stand = DevicePluginStand(
        None if attach else Command(words, environment(given["env"]), private_mount),
        directory=(device_plugins or _KUBELET_DIRECTORY) if attach else None,
        registry=registry,
        change_command=change,
        settings=Settings(start=given["wait"], wait=given["wait"], stop=given["stop_timeout"]),
        keep=given["keep"],
    )
    if cdi_dir:
        stand.cdi_directories = cdi_dir
    check_words([*words, *given["env"], change], Places.below(Path()).words)
    return run(stand, ALL, given)


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
        return print_checks(ALL)
    if bool(words) == attach:
        raise click.UsageError("give either the command that starts the driver, after --, or --attach")
    if attach and not kubeconfig:
        raise click.UsageError("--attach needs --kubeconfig, because claims are created in the driver's cluster")
    stand = DraStand(
        None if attach else Command(words, environment(given["env"]), private_mount),
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
    return run(stand, ALL, given)


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
