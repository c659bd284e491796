"""The configuration of the daemon: from defaults, the file, the environment and flags, each overriding the one before.

`KEYS` is the only list of settings, and docs/configuration.md is tested against it. Values from all sources pass
through the same parser, so an invalid value is reported in the same words, with its origin.
"""

import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from devlet.cluster.store.settings import Settings
from devlet.daemon import config_file, controllers, feature_gates, node_settings
from devlet.daemon.node_settings import NodeSettings
from devlet.daemon.root import default_root
from devlet.errors import InvalidInput
from devlet.kit import durations
from devlet.node.devices import release_hooks
from devlet.node.topology import options
from devlet.objects.names import dns_subdomain
from devlet.objects.values.quantity import Quantity
from devlet.serve.kube_api import reader_limits

LOG_FORMATS = ("text", "json")
MAX_VERBOSITY = 10
MIN_DURATION = 0.001
MIN_BYTES = 8 << 20  # so that the largest object fits in any encoding


@dataclass(frozen=True, slots=True)
class Config:
    root: Path
    node_name: str
    log_format: str = "text"
    verbosity: int = 0
    stop_timeout: float = 10.0  # seconds for all parts together, after which they are cancelled
    controllers: frozenset[str] = frozenset(controllers.NAMES)
    api_address: tuple[str, int] = ("127.0.0.1", 0)  # port 0 chooses a free port, which is then kept
    api_idle: float = 30.0  # seconds that a connection to the API may be idle
    cdi_root: Path | None = None  # directory of CDI specs; None means below the root
    kubeconfig: Path | None = None  # of the cluster to join; None means the embedded one
    context: str = ""  # of the kubeconfig; empty means its current context
    limits: reader_limits.Settings = field(default=reader_limits.Settings())
    store: Settings = field(default=Settings())
    node: NodeSettings = field(default=NodeSettings())


@dataclass(frozen=True, slots=True)
class Key:
    """A setting: its field in `Config` (or in the part that `store.`, `node.` or `limits.` names), its name in the
    file, and its environment variable, if any. `no_control` is not a field: it removes names from `controllers`."""

    field: str
    name: str
    variable: str
    parse: Callable[[Any], Any]
    is_list: bool = False  # of mappings, in the file only
    is_mapping: bool = False  # to single values, whose entries from all sources are merged

    @property
    def flag(self) -> str:
        """The parameter of the flag, which not every key has."""
        return self.field.rpartition(".")[2]


def load(flags: Mapping[str, Any], environ: Mapping[str, str] = os.environ, file: Path | None = None) -> Config:
    """Load the configuration from all sources. `flags` are keyed by field name without prefix; None means not given."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    file = file or (Path(environ["DEVLET_CONFIG"]) if environ.get("DEVLET_CONFIG") else None)
    settings = _read(file) if file else {}
    for key in KEYS:
        for value, origin in _given(key, settings, environ, flags):
            parsed = _parsed(key, value, origin)
            values[key.field] = values.get(key.field, {}) | parsed if key.is_mapping else parsed
            origins[key.field] = origin
    _check_together(values, origins)
    values.setdefault("root", default_root(environ))
    values.setdefault("node_name", _host_name())
    return _config(values)


def _given(
    key: Key, settings: Mapping[str, config_file.Setting], environ: Mapping[str, str], flags: Mapping[str, Any]
) -> Iterator[tuple[Any, str]]:
    """Yield the values of a key with their origins; later ones take precedence."""
    if setting := settings.get(key.name):
        yield setting.value, f"{setting.place}: {key.name}"
    if key.variable and (text := environ.get(key.variable)):
        yield text, key.variable
    if (flag := flags.get(key.flag)) is not None:
        yield flag, f"--{key.flag.replace('_', '-')}"


def _read(file: Path) -> dict[str, config_file.Setting]:
    lists, mappings = ([k.name for k in KEYS if k.is_list], [k.name for k in KEYS if k.is_mapping])
    return config_file.read(file, [key.name for key in KEYS], lists, mappings)


def _check_together(values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    """Reject settings of the embedded cluster for a node that joins another one."""
    if "kubeconfig" not in values:
        if "context" in values:
            raise InvalidInput(f"{origins['context']}: a context needs a kubeconfig: give one with --kubeconfig")
        return
    for field_ in ("api_address", "controllers"):
        if values.get(field_):
            raise InvalidInput(
                f"{origins[field_]}: applies only to the embedded cluster and cannot be combined with"
                f" {origins['kubeconfig']}: use `devlet control` to run controllers for another cluster"
            )


def _config(values: dict[str, Any]) -> Config:
    if values.pop("no_control", False):
        values["controllers"] = values.get("controllers", frozenset(controllers.NAMES)).difference(controllers.CONTROL)
    store, node = _taken(values, "store."), _taken(values, "node.")
    if options := _taken(node, "topology_options."):
        node["topology_options"] = dict(NodeSettings().topology_options) | options
    if gates := node.get("feature_gates"):
        node["feature_gates"] = feature_gates.defaults() | gates
    limits = reader_limits.Settings(**_taken(values, "limits."))
    return Config(**values, limits=limits, store=Settings(**store), node=NodeSettings(**node))


def _taken(values: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Remove the values whose names begin with the prefix, and return them without it."""
    return {name.removeprefix(prefix): values.pop(name) for name in list(values) if name.startswith(prefix)}


def _parsed(key: Key, value: Any, origin: str) -> Any:
    try:
        return key.parse(value)
    except ValueError as e:
        raise InvalidInput(f"{origin}: {e}") from e


def _path(value: Any) -> Path:
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise ValueError(f"{value!r} is not a path")
    return Path(os.path.abspath(os.path.expanduser(value)))


def _path_or_none(value: Any) -> Path | None:
    return None if value == "" else _path(value)


def _node_name(value: Any) -> str:
    if isinstance(value, str) and not dns_subdomain(value):
        return value
    raise ValueError(f"{value!r} is not a node name: expected at most 253 lowercase letters, digits, '-' and '.'")


def _log_format(value: Any) -> str:
    if value not in LOG_FORMATS:
        raise ValueError(f"{value!r} is not a log format: expected {' or '.join(LOG_FORMATS)}")
    return str(value)


def _verbosity(value: Any) -> int:
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,4}", text) or int(text) > MAX_VERBOSITY:
        raise ValueError(f"{value!r} is not a verbosity: expected a whole number from 0 to {MAX_VERBOSITY}")
    return int(text)


def address_of(value: Any) -> tuple[str, int]:
    """Parse IP, IP:PORT or [IPV6]:PORT. Host names are not accepted, because they would have to be resolved."""
    text = str(value)
    host, colon, port = text.rpartition(":") if text.count(":") == 1 or text.startswith("[") else (text, "", "0")
    if not colon:
        host, port = text, "0"
    try:
        address = str(ip_address(host.strip("[]")))
    except ValueError:
        raise ValueError(f"{text!r} is not an address: expected IP or IP:PORT, such as 127.0.0.1:6443") from None
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError(f"{text!r}: {port!r} is not a port number")
    return address, int(port)


def _controllers(value: Any) -> frozenset[str]:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a list of controllers such as '*,-namespace'")
    return controllers.parse(value)


def _context(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not the name of a context")
    return value


def _switch(value: Any) -> bool:
    if (text := str(value).lower()) not in ("true", "false"):
        raise ValueError(f"{value!r}: expected true or false")
    return text == "true"


def _duration(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is not a duration such as 2s, 500ms or 1m30s")
    seconds = durations.parse(str(value))
    if seconds < MIN_DURATION:
        raise ValueError(f"{value!r} is too short: expected at least 1ms")
    return seconds


def _count(value: Any) -> int:
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
        raise ValueError(f"{value!r} is not a limit: expected a whole number from 1 to 999999999")
    return int(text)


def _bytes(value: Any) -> int:
    try:
        size = Quantity.parse(str(value)).fraction
    except InvalidInput:
        size = Fraction(0)
    if isinstance(value, bool) or size < MIN_BYTES:
        raise ValueError(f"{value!r} is not a number of bytes such as 64Mi: expected at least 8Mi")
    return int(size)


def _release_hooks(items: Sequence[config_file.Setting]) -> tuple[Mapping[str, Any], ...]:
    """Check release hooks here, where their lines are known, and return them unparsed for the node."""
    for index, item in enumerate(items):
        try:
            release_hooks.parse([item.value])
        except InvalidInput as e:
            raise InvalidInput(f"{item.place}: {e}".replace("releaseHooks[0]", f"releaseHooks[{index}]")) from e
    return tuple(item.value for item in items)


def _host_name() -> str:
    """Return the host name in lower case, as the kubelet does, or localhost if it is not a valid node name."""
    name = socket.gethostname().lower()
    return "localhost" if dns_subdomain(name) else name


KEYS = (
    Key("root", "root", "DEVLET_ROOT", _path),
    Key("node_name", "nodeName", "NODE_NAME", _node_name),
    Key("log_format", "logFormat", "DEVLET_LOG_FORMAT", _log_format),
    Key("verbosity", "verbosity", "DEVLET_VERBOSITY", _verbosity),
    Key("api_address", "apiAddress", "DEVLET_API_ADDRESS", address_of),
    Key("controllers", "controllers", "DEVLET_CONTROLLERS", _controllers),
    Key("no_control", "noControl", "DEVLET_NO_CONTROL", _switch),
    Key("cdi_root", "cdiRoot", "DEVLET_CDI_ROOT", _path),
    Key("kubeconfig", "kubeconfig", "DEVLET_KUBECONFIG", _path),
    Key("context", "context", "DEVLET_CONTEXT", _context),
    Key("node.feature_gates", "featureGates", "DEVLET_FEATURE_GATES", node_settings.gates, is_mapping=True),
    Key("node.topology_policy", "topologyPolicy", "DEVLET_TOPOLOGY_POLICY", node_settings.policy),
    Key("node.topology_scope", "topologyScope", "DEVLET_TOPOLOGY_SCOPE", node_settings.scope),
    Key(
        f"node.topology_options.{options.PREFER_CLOSEST}",
        "topologyOptions.preferClosestNUMANodes",
        "",
        node_settings.prefer_closest,
    ),
    Key(
        f"node.topology_options.{options.MAX_NODES}",
        "topologyOptions.maxAllowableNUMANodes",
        "",
        node_settings.max_allowable,
    ),
    Key("node.numa_nodes", "numaNodes", "DEVLET_NUMA_NODES", node_settings.numa_nodes),
    Key("node.max_pods", "maxPods", "", node_settings.max_pods),
    Key("store.max_events", "maxEvents", "", node_settings.max_events),
    Key("node.node_ip", "nodeIP", "DEVLET_NODE_IP", node_settings.node_ip),
    Key("node.static_pod_path", "staticPodPath", "DEVLET_STATIC_POD_PATH", _path_or_none),
    Key("node.release_hooks", "releaseHooks", "", _release_hooks, is_list=True),
    Key("node.legacy_drivers", "legacyDrivers", "", node_settings.legacy_drivers, is_mapping=True),
    Key("limits.watches_per_user", "limits.watchesPerUser", "", _count),
    Key("limits.unread_bytes_per_user", "limits.unreadBytesPerUser", "", _bytes),
    Key("limits.unread_bytes", "limits.unreadBytes", "", _bytes),
    Key("store.watch_bytes", "limits.recentChangesBytes", "", _bytes),
    Key("stop_timeout", "timeouts.stop", "", _duration),
    Key("api_idle", "timeouts.apiIdle", "", _duration),
    Key("store.history_age", "timeouts.historyAge", "", _duration),
    Key("store.compact_every", "timeouts.compactEvery", "", _duration),
    Key("store.event_ttl", "timeouts.eventTTL", "", _duration),
    Key("store.bookmark_every", "timeouts.bookmarkEvery", "", _duration),
    Key("store.version_wait", "timeouts.versionWait", "", _duration),
    Key("node.plugin_dial", "timeouts.pluginDial", "", _duration),
    Key("node.plugin_options", "timeouts.pluginOptions", "", _duration),
    Key("node.plugin_allocate", "timeouts.pluginAllocate", "", _duration),
    Key("node.plugin_preferred", "timeouts.pluginPreferred", "", _duration),
    Key("node.plugin_pre_start", "timeouts.pluginPreStart", "", _duration),
    Key("node.plugin_grace", "timeouts.pluginGrace", "", _duration),
    Key("node.release_hook", "timeouts.releaseHook", "", _duration),
    Key("node.dra_call", "timeouts.draCall", "", _duration),
    Key("node.prepare_retry", "timeouts.prepareRetry", "", _duration),
    Key("node.slice_wipe_delay", "timeouts.sliceWipeDelay", "", _duration),
    Key("node.claim_reconcile", "timeouts.claimReconcile", "", _duration),
    Key("node.health_retry", "timeouts.healthRetry", "", _duration),
    Key("node.health_validity", "timeouts.healthValidity", "", _duration),
)
