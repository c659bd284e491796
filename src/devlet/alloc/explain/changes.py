"""The nearest changes that would make claims fit. Each was tried with the allocator: what was not tried is not said."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from devlet.alloc.allocator import Allocator
from devlet.alloc.explain.copies import copy_for
from devlet.alloc.explain.proposals import Proposal
from devlet.alloc.explain.report import Change
from devlet.alloc.explain.trials import Trials
from devlet.objects.types.node import Node

__all__ = ["CHANGES_MAX", "Verified", "helpful"]

CHANGES_MAX = 5


@dataclass(frozen=True, slots=True)
class Verified:
    """A change with what was tried."""

    change: Change
    proposal: Proposal
    node: Node


def helpful(
    allocator: Allocator, node: Node, proposals: Iterable[Proposal], trials: Trials, most: int = CHANGES_MAX
) -> list[Verified]:
    """Those that make it fit, the smallest first."""
    found: list[Verified] = []
    groups: set[str] = set()
    for proposal in sorted(proposals, key=lambda each: each.size):
        if len(found) >= most or trials.is_spent:
            break
        if proposal.group and proposal.group in groups:
            continue
        if trials.fits(tried(allocator, node, proposal), node, proposal.claims):
            groups.add(proposal.group)
            found.append(Verified(Change(proposal.text, proposal.size, node.name), proposal, node))
    return found


def tried(allocator: Allocator, node: Node, proposal: Proposal) -> Allocator:
    """The allocator that a proposal is tried with."""
    if proposal.difference is None:
        return allocator
    return copy_for(allocator, node.name, proposal.difference)


def merged(found: Sequence[Verified]) -> list[Verified]:
    """Of several nodes: each change once, the smallest first."""
    by_text: dict[str, Verified] = {}
    for each in found:
        by_text.setdefault(each.change.text, each)
    return sorted(by_text.values(), key=lambda each: each.change.size)[:CHANGES_MAX]
