"""Run a driver as a program: its flags, its log, its API server, and how it ends.

Flags and variables have the names that drivers in Go use, so that manifests need no change. Each flag can also be set
by a variable; the flag takes precedence.
"""

import argparse
import inspect
import logging
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.connection import Connection
from devlet.cluster.remote.in_cluster import in_cluster
from devlet.errors import DevletError, InvalidInput
from devlet.kit import facts
from devlet.kit.parts import running
from devlet.kit.stopping import Stop
from devlet.sdk import metadata, stalls
from devlet.sdk.device_plugin import DevicePlugin, PluginOptions
from devlet.sdk.dra_driver import CDI, KUBELET, DraDriver, DraOptions

__all__ = ["dra_options", "plugin_options", "run_driver", "run_plugin"]

log = logging.getLogger(__name__)

_DIRECTORY: Mapping[str, Any] = {"metavar": "DIR", "type": Path}

Read = Callable[[str], Any]

STOP_TIMEOUT = 10.0  # seconds for calls that are under way to end
STALLS = stalls.Settings()


def run_driver(driver: DraDriver, argv: Sequence[str] | None = None) -> None:
    arguments = _parsed(driver, _dra_parser(_about(driver, driver.name), os.environ), argv)

    async def serve() -> None:
        async with connected(_connection(arguments)) as cluster:
            await driver.run(dra_options(arguments, driver.name), cluster)

    _run(serve, arguments)


def run_plugin(plugin: DevicePlugin, argv: Sequence[str] | None = None) -> None:
    arguments = _parsed(plugin, _plugin_parser(_about(plugin, plugin.resource), os.environ), argv)
    options = plugin_options(arguments)

    async def serve() -> None:
        await plugin.run(options)

    _run(serve, arguments)


def dra_options(arguments: argparse.Namespace, name: str) -> DraOptions:
    return DraOptions(
        node_name=arguments.node_name,
        kubelet=arguments.kubelet,
        registry=arguments.registry,
        directory=arguments.plugins and arguments.plugins / name,
        cdi_directory=arguments.cdi_root,
        instance=arguments.instance,
        metadata=_versions(arguments.device_metadata),
    )


def plugin_options(arguments: argparse.Namespace) -> PluginOptions:
    return PluginOptions(
        directory=arguments.device_plugins or arguments.kubelet / "device-plugins",
        registry=arguments.registry,
        socket=arguments.socket,
    )


def _versions(text: str) -> tuple[str, ...]:
    return metadata.VERSIONS if text == "all" else tuple(each for each in text.split(",") if each)


def _about(driver: DraDriver | DevicePlugin, name: str) -> str:
    return inspect.cleandoc(type(driver).__doc__ or f"The driver {name}.")


def _parsed(
    driver: DraDriver | DevicePlugin, parser: argparse.ArgumentParser, argv: Sequence[str] | None
) -> argparse.Namespace:
    """Parse the flags. Values that the author refuses are reported like those of other flags."""
    driver.arguments(parser)
    arguments = parser.parse_args(argv)
    try:
        driver.configure(arguments)
    except InvalidInput as e:
        parser.error(str(e))
    return arguments


def _dra_parser(about: str, environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser, add = _parser(about, environment)
    add("--node-name", "NODE_NAME", metavar="NAME", default="", help="Name of the node that has the devices.")
    add(
        "--kubeconfig",
        "KUBECONFIG",
        metavar="FILE",
        type=lambda text: [Path(text)],
        read=lambda text: kubeconfig.paths({"KUBECONFIG": text}),
        default=[],
        help="Kubeconfig of the API server. In a pod, the default is the pod's service account.",
    )
    add(
        "--kubelet-registrar-directory-path",
        "KUBELET_REGISTRAR_DIRECTORY_PATH",
        dest="registry",
        **_DIRECTORY,
        help="Directory in which the node looks for drivers (default KUBELET_ROOT/plugins_registry).",
    )
    add(
        "--kubelet-plugins-directory-path",
        "KUBELET_PLUGINS_DIRECTORY_PATH",
        dest="plugins",
        **_DIRECTORY,
        help="Directory that contains the driver's own directory (default KUBELET_ROOT/plugins).",
    )
    add("--cdi-root", "CDI_ROOT", **_DIRECTORY, default=CDI, help="Directory of CDI files (default %(default)s).")
    add(
        "--device-metadata",
        "DEVICE_METADATA",
        metavar="VERSIONS",
        default="",
        help=f"Let containers read metadata of their devices: all, or versions such as {metadata.V1ALPHA1}.",
    )
    add(
        "--rolling-update-uid",
        "POD_UID",
        dest="instance",
        metavar="UID",
        default="",
        help="UID of the pod, to distinguish instances that run at the same time.",
    )
    return parser


def _plugin_parser(about: str, environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser, add = _parser(about, environment)
    add(
        "--device-plugin-path",
        "DEVICE_PLUGIN_PATH",
        dest="device_plugins",
        **_DIRECTORY,
        help="Directory of kubelet.sock (default KUBELET_ROOT/device-plugins).",
    )
    add(
        "--registry",
        "DEVICE_PLUGIN_REGISTRY",
        **_DIRECTORY,
        help="Create the socket in this directory, such as KUBELET_ROOT/plugins_registry; do not call kubelet.sock.",
    )
    add(
        "--socket",
        "DEVICE_PLUGIN_SOCKET",
        metavar="NAME",
        default="",
        help="File name of the plugin's socket (default: the resource with _ for /).",
    )
    return parser


def _parser(about: str, environment: Mapping[str, str]) -> tuple[argparse.ArgumentParser, Callable[..., None]]:
    """Return a parser. The help shows the author's flags first, because these are the same for all drivers."""
    parser = argparse.ArgumentParser(
        usage="%(prog)s [flags]", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    group = parser.add_argument_group("flags of every driver, with the variables that set their defaults")

    def add(flag: str, variable: str, *more: str, default: Any = None, help: str, read: Read = str, **how: Any) -> None:
        # argparse parses a default that is a string like the flag's value.
        value = read(text) if (text := environment.get(variable)) else default
        group.add_argument(flag, *more, default=value, help=f"{help} [{variable}]", **how)

    add(
        "--kubelet-root",
        "KUBELET_ROOT",
        dest="kubelet",
        **_DIRECTORY,
        default=KUBELET,
        help="Directory of the kubelet (default %(default)s).",
    )
    add(
        "--log-format",
        "LOG_FORMAT",
        metavar="FORMAT",
        type=_log_format,
        default="text",
        help="Format of the log on stderr: text or json.",
    )
    add(
        "-v", "VERBOSITY", "--verbosity", metavar="LEVEL", type=int, default=0, help="Log every call if greater than 0."
    )
    return parser, add


def _log_format(text: str) -> str:
    """Check the format. `choices` of argparse would not check the value of a variable."""
    if text not in ("text", "json"):
        raise argparse.ArgumentTypeError(f"LOG_FORMAT or the flag is {text!r}, expected text or json")
    return text


def _connection(arguments: argparse.Namespace) -> Connection:
    return kubeconfig.connection(arguments.kubeconfig) if arguments.kubeconfig else in_cluster()


def _run(serve: Callable[[], Coroutine[Any, Any, None]], arguments: argparse.Namespace) -> None:
    """Run until a signal. A driver that cannot start, or whose author calls `sys.exit`, prints the reason in one
    line."""
    facts.configure(arguments.log_format, arguments.verbosity)

    async def until_stopped() -> None:
        stop = Stop(STOP_TIMEOUT)
        async with running(stop.listen):
            with stalls.watched(STALLS), stop.scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(serve)
                    await stop.asked()
                    tasks.cancel_scope.cancel()
        stop.check()

    try:
        anyio.run(until_stopped)
    except* (DevletError, SystemExit) as group:
        raise _exit(_leaves(group)) from None


def _exit(errors: Sequence[BaseException]) -> SystemExit:
    asked = [each for each in errors if isinstance(each, SystemExit)]
    return SystemExit(asked[0].code if asked else "\n".join(f"error: {each}" for each in errors))


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for each in group.exceptions:
        found += _leaves(each) if isinstance(each, BaseExceptionGroup) else [each]
    return found
