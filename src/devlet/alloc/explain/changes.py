"""The smallest changes that would make claims fit. Every suggested change was tried with the allocator."""

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
    """A change, and the proposal that was tried."""

    change: Change
    proposal: Proposal
    node: Node


def helpful(
    allocator: Allocator, node: Node, proposals: Iterable[Proposal], trials: Trials, most: int = CHANGES_MAX
) -> list[Verified]:
    """Return the proposals that make the claims fit, the smallest first."""
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
    """Return the allocator to try the proposal with."""
    if proposal.difference is None:
        return allocator
    return copy_for(allocator, node.name, proposal.difference)


def merged(found: Sequence[Verified]) -> list[Verified]:
    """Merge the changes found for several nodes: each change once, the smallest first."""
    by_text: dict[str, Verified] = {}
    for each in found:
        by_text.setdefault(each.change.text, each)
    return sorted(by_text.values(), key=lambda each: each.change.size)[:CHANGES_MAX]
