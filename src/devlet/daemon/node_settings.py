"""What the node agent is told: NUMA policy, the patience with plugins, and what happens when devices are given back.

Policies, scopes and options have the kubelet's names. A release hook is carried as the plain mapping that the file has.
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
    """Times are seconds; each of the first five is for one call to a plugin."""

    plugin_dial: float = 10.0
    plugin_options: float = 10.0
    plugin_allocate: float = 30.0
    plugin_preferred: float = 10.0
    plugin_pre_start: float = 30.0
    plugin_grace: float = 300.0  # how long the devices of a plugin that went away still count
    release_hook: float = 30.0  # for one hook
    dra_call: float = 45.0  # for one call to a DRA driver
    slice_wipe_delay: float = 30.0  # how long a DRA driver may be gone before its slices are deleted
    prepare_retry: float = 1.0  # before claims that could not be prepared are tried again; doubled each time
    claim_reconcile: float = 60.0  # how often claims of pods that are gone are looked for
    health_retry: float = 5.0  # before a health stream that ended is opened again
    health_validity: float = 30.0  # of a report on a device's health that does not say it itself
    topology_policy: str = "none"
    topology_scope: str = "container"
    topology_options: Mapping[str, str] = field(default_factory=_options)
    numa_nodes: int = 0  # 0: those of the machine
    max_pods: int = 110  # as the kubelet
    node_ip: str = ""  # how others reach this node; empty: the loopback address, or in a cluster that of the machine
    static_pod_path: Path | None = None  # a directory of manifests
    release_hooks: tuple[Mapping[str, Any], ...] = ()
    legacy_drivers: Mapping[str, str] = field(default_factory=dict)  # driver name → API version
    feature_gates: Mapping[str, bool] = field(default_factory=feature_gates.defaults)  # all that there are


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
    """From the file, where each entry has its line."""
    return {name: _legacy_driver(name, entry) for name, entry in entries.items()}


def _legacy_driver(name: str, entry: Setting) -> str:
    if not name or driver_name(name):
        raise InvalidInput(f"{entry.place}: legacyDrivers: {name[:80]!r} is not the name of a DRA driver")
    try:
        return _one_of(entry.value, "DRA API version of old drivers", LEGACY)
    except ValueError as e:
        raise InvalidInput(f"{entry.place}: legacyDrivers.{name}: {e}") from e


def gates(value: Any) -> dict[str, bool]:
    """From a flag or variable, as `A=true,B=false`, or from the file, where each entry has its line."""
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
