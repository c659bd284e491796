"""What the node agent is told: NUMA policy, the patience with plugins, and what happens when devices are given back.

Policies, scopes and options have the kubelet's names. A release hook is carried as the plain mapping that the file has.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from devlet.node.topology import masks
from devlet.node.topology.manager import Scope
from devlet.node.topology.options import DEFAULT_MAX_NODES, MAX_NODES, PREFER_CLOSEST
from devlet.node.topology.policies import Policy

POLICIES = tuple(map(str, Policy))
SCOPES = tuple(map(str, Scope))
MAX_NUMA_NODES = masks.MAX_NODE + 1
MAX_PODS = 100_000


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
    topology_policy: str = "none"
    topology_scope: str = "container"
    topology_options: Mapping[str, str] = field(default_factory=_options)
    numa_nodes: int = 0  # 0: those of the machine
    max_pods: int = 110  # as the kubelet
    release_hooks: tuple[Mapping[str, Any], ...] = ()


def policy(value: Any) -> str:
    return _one_of(value, "topology policy", POLICIES)


def scope(value: Any) -> str:
    return _one_of(value, "topology scope", SCOPES)


def numa_nodes(value: Any) -> int:
    return _whole(value, "number of NUMA nodes", 0, MAX_NUMA_NODES)


def max_pods(value: Any) -> int:
    return _whole(value, "number of pods", 1, MAX_PODS)


def prefer_closest(value: Any) -> str:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r}: expected true or false")
    return str(value).lower()


def max_allowable(value: Any) -> str:
    return str(_whole(value, "number of NUMA nodes", DEFAULT_MAX_NODES, MAX_NUMA_NODES))


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
