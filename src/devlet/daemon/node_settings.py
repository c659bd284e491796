"""The settings of the node agent: NUMA policy, time limits for plugins, release hooks and more.

Policies, scopes and options have the kubelet's names. A release hook is kept as the plain mapping from the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from devlet.daemon import feature_gates
from devlet.daemon.config_file import Setting
from devlet.errors import InvalidInput
from devlet.node.topology import masks
from devlet.node.topology.manager import Scope
from devlet.node.topology.options import DEFAULT_MAX_NODES, MAX_NODES, PREFER_CLOSEST
from devlet.node.topology.policies import Policy
from devlet.objects.names import driver_name
from devlet.plugins.dra import Service

POLICIES = tuple(map(str, Policy))
SCOPES = tuple(map(str, Scope))
MAX_NUMA_NODES = masks.MAX_NODE + 1
MAX_PODS = 100_000
MAX_EVENTS = 10_000_000
LEGACY = tuple(map(str, (Service.V1ALPHA4, Service.V1ALPHA3, Service.V1ALPHA2, Service.V1ALPHA1)))


def _options() -> dict[str, str]:
    return {PREFER_CLOSEST: "false", MAX_NODES: str(DEFAULT_MAX_NODES)}


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Settings of the node agent. Times are in seconds; each of the first five limits one call to a plugin."""

    plugin_dial: float = 10.0
    plugin_options: float = 10.0
    plugin_allocate: float = 30.0
    plugin_preferred: float = 10.0
    plugin_pre_start: float = 30.0
    plugin_grace: float = 300.0  # during which the devices of a disconnected plugin still count
    release_hook: float = 30.0  # for one hook
    dra_call: float = 45.0  # for one call to a DRA driver
    slice_wipe_delay: float = 30.0  # until the slices of a DRA driver that is gone are deleted
    prepare_retry: float = 1.0  # until a failed preparation is retried; doubled each time
    claim_reconcile: float = 60.0  # between two searches for claims of pods that are gone
    health_retry: float = 5.0  # until a health stream that ended is reopened
    health_validity: float = 30.0  # of a health report that has no timeout
    topology_policy: str = "none"
    topology_scope: str = "container"
    topology_options: Mapping[str, str] = field(default_factory=_options)
    numa_nodes: int = 0  # 0 means those of the machine
    max_pods: int = 110  # the kubelet's default
    node_ip: str = ""  # the node's address; empty means loopback, or the machine's address in another cluster
    static_pod_path: Path | None = None  # a directory of manifests
    release_hooks: tuple[Mapping[str, Any], ...] = ()
    legacy_drivers: Mapping[str, str] = field(default_factory=dict)  # driver name → API version
    feature_gates: Mapping[str, bool] = field(default_factory=feature_gates.defaults)  # all known gates


def policy(value: Any) -> str:
    return _one_of(value, "topology policy", POLICIES)


def scope(value: Any) -> str:
    return _one_of(value, "topology scope", SCOPES)


def numa_nodes(value: Any) -> int:
    return _whole(value, "number of NUMA nodes", 0, MAX_NUMA_NODES)


def max_pods(value: Any) -> int:
    return _whole(value, "number of pods", 1, MAX_PODS)


def max_events(value: Any) -> int:
    return _whole(value, "number of events", 1, MAX_EVENTS)


def node_ip(value: Any) -> str:
    try:
        return str(ip_address(str(value))) if value != "" else ""
    except ValueError:
        raise ValueError(f"{value!r} is not an IP address such as 10.0.0.5") from None


def prefer_closest(value: Any) -> str:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r}: expected true or false")
    return str(value).lower()


def max_allowable(value: Any) -> str:
    return str(_whole(value, "number of NUMA nodes", DEFAULT_MAX_NODES, MAX_NUMA_NODES))


def legacy_drivers(entries: Mapping[str, Setting]) -> dict[str, str]:
    """Parse the entries of the file, each of which has its line."""
    return {name: _legacy_driver(name, entry) for name, entry in entries.items()}


def _legacy_driver(name: str, entry: Setting) -> str:
    if not name or driver_name(name):
        raise InvalidInput(f"{entry.place}: legacyDrivers: {name[:80]!r} is not the name of a DRA driver")
    try:
        return _one_of(entry.value, "DRA API version of old drivers", LEGACY)
    except ValueError as e:
        raise InvalidInput(f"{entry.place}: legacyDrivers.{name}: {e}") from e


def gates(value: Any) -> dict[str, bool]:
    """Parse `A=true,B=false` from a flag or variable, or the entries of the file, each of which has its line."""
    if not isinstance(value, dict):
        return feature_gates.parse(value)
    return {name: _gate(name, entry) for name, entry in value.items()}


def _gate(name: str, entry: Setting) -> bool:
    try:
        return feature_gates.gate(name, entry.value)
    except ValueError as e:
        raise InvalidInput(f"{entry.place}: featureGates: {e}") from e


def _one_of(value: Any, what: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"{value!r} is not a {what}: expected {', '.join(allowed[:-1])} or {allowed[-1]}")
    return str(value)


def _whole(value: Any, what: str, least: int, most: int) -> int:
    text = str(value)
    digits = text.isascii() and text.isdigit() and len(text) < 10
    if isinstance(value, bool) or not digits or not least <= int(text) <= most:
        raise ValueError(f"{value!r} is not a {what}: expected a whole number from {least} to {most}")
    return int(text)
