"""The topology policies: how hints are merged, and whether a pod with the result is admitted."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from devlet.node.topology import masks
from devlet.node.topology.hints import Hint, Hints, Mask
from devlet.node.topology.machine import Machine
from devlet.node.topology.merge import closest, hint_lists, merge, narrowest

__all__ = ["Decision", "Policy", "decide"]


class Policy(StrEnum):
    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"


class Decision(NamedTuple):
    """The nodes from which devices should come (None: any), and whether the pod is admitted."""

    affinity: Mask | None
    admitted: bool


def decide(policy: Policy, provided: Sequence[Hints | None], machine: Machine, *, prefer_closest: bool) -> Decision:
    """Merge the hints; `provided` has those of each provider."""
    if policy is Policy.NONE:
        return Decision(None, True)
    lists = hint_lists(provided)
    whole = masks.bits(machine.nodes)
    if policy is Policy.SINGLE_NUMA_NODE:
        hint = merge([_single(hints) for hints in lists], whole)
        return Decision(None if hint.mask == whole else hint.mask, hint.preferred)
    hint = merge(lists, whole, closest(machine) if prefer_closest else narrowest)
    return Decision(hint.mask, hint.preferred or policy is Policy.BEST_EFFORT)


def _single(hints: Sequence[Hint]) -> list[Hint]:
    return [hint for hint in hints if hint.preferred and (hint.mask is None or masks.count(hint.mask) == 1)]
