"""The best merged hint of all resources.

By definition each combination of one hint per resource is a candidate, and `better` compares them all. Most of this
product is never built. `better` is an order, so duplicates and sequence do not matter, and a preferred candidate beats
all others. So the masks that all resources prefer are compared first, and all intersections only if there are none.

With a few nodes, the masks of two sets are intersected pair by pair. With sixteen nodes that would be four billion
pairs, so the pairs are counted instead: the number of pairs whose masks both contain a given mask is a product of two
numbers, and these products for all masks give the number of pairs whose intersection is exactly that mask.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from functools import reduce
from operator import add, mul, or_, sub

from devlet.node.topology import masks
from devlet.node.topology.hints import Hint, Hints, Mask
from devlet.node.topology.machine import Machine

__all__ = ["Pick", "best_count", "better", "closest", "hint_lists", "intersections", "merge", "narrowest"]

Pick = Callable[[Mask, Mask], Mask]  # chooses between two different masks that are equally good otherwise

_NO_PREFERENCE = (Hint(None, True),)
_IMPOSSIBLE = (Hint(None, False),)
_COUNTED_MAX = 20  # nodes; with more, a table of all masks is too large


def hint_lists(provided: Iterable[Hints | None]) -> list[Sequence[Hint]]:
    """Return a list for each resource, and one for each provider without resources. No list is empty."""
    return [hints for provider in provided for hints in _lists_of(provider)]


def _lists_of(hints: Hints | None) -> Iterable[Sequence[Hint]]:
    if not hints:
        return [_NO_PREFERENCE]
    return [_NO_PREFERENCE if each is None else each or _IMPOSSIBLE for each in hints.values()]


def best_count(lists: Iterable[Sequence[Hint]]) -> int:
    """Return the size of the largest of the resources' narrowest hints; 0 if no resource has a preference."""
    narrowest = (min((masks.count(hint.mask) for hint in hints if hint.mask is not None), default=0) for hints in lists)
    return max(narrowest, default=0)


def narrowest(current: Mask, candidate: Mask) -> Mask:
    return candidate if masks.narrower(candidate, current) else current


def closest(machine: Machine) -> Pick:
    """Return a choice that prefers nodes with smaller distances, among masks of the same size. Needs distances."""
    places = {node: place for place, node in enumerate(machine.nodes)}

    def spread(mask: Mask) -> int:
        within = [places[node] for node in masks.nodes(mask)]
        return sum(machine.distances[a][b] for a in within for b in within)

    def pick(current: Mask, candidate: Mask) -> Mask:
        if masks.count(current) == masks.count(candidate):
            return min(current, candidate, key=lambda mask: (spread(mask), mask))
        return narrowest(current, candidate)

    return pick


def better(current: Hint | None, candidate: Hint, best: int, pick: Pick = narrowest) -> Hint | None:
    """Return the better hint. `best` is the `best_count`. A candidate without nodes does not count."""
    if not candidate.mask:
        return current
    if current is None or not current.mask:
        return candidate
    if current.preferred != candidate.preferred:
        return current if current.preferred else candidate
    if not current.preferred:
        now, then = (_distance(masks.count(hint.mask or 0), best) for hint in (current, candidate))
        if now != then:
            return current if now < then else candidate
    if current.mask == candidate.mask:
        return current
    return current if pick(current.mask, candidate.mask) == current.mask else candidate


def _distance(count: int, best: int) -> tuple[bool, int]:
    """Return the order of a count by its difference from the best one: counts below come before all counts above."""
    return count > best, abs(count - best)


def merge(lists: Sequence[Sequence[Hint]], machine: Mask, pick: Pick = narrowest) -> Hint:
    """Return the best hint. If no node satisfies all resources, that is the whole machine, not preferred."""
    best = best_count(lists)
    candidates = [Hint(mask, True) for mask in _agreed(lists, machine) if mask]
    if not candidates:
        candidates = [Hint(mask, False) for mask in _combined(lists, machine)]
    found = reduce(lambda now, then: better(now, then, best, pick), candidates, None)
    return found or Hint(machine, False)


def _agreed(lists: Sequence[Sequence[Hint]], machine: Mask) -> set[Mask]:
    """Return the masks that every list prefers. A list with a preferred hint without a mask prefers all."""
    choices = [{hint.mask for hint in hints if hint.preferred} for hints in lists]
    wanted = {mask for own in choices for mask in own if mask is not None}
    agreed = {mask & machine for mask in wanted if all(mask in own or None in own for own in choices)}
    return agreed | {machine} if all(None in own for own in choices) else agreed


def _combined(lists: Sequence[Sequence[Hint]], machine: Mask) -> set[Mask]:
    """Return the intersections of all combinations of one hint per list."""
    choices = ({machine if hint.mask is None else hint.mask & machine for hint in hints} for hints in lists)
    return reduce(intersections, choices, {machine})


def intersections(left: Set[Mask], right: Set[Mask]) -> set[Mask]:
    shared = reduce(or_, left, 0) & reduce(or_, right, 0)
    left = {mask & shared for mask in left}
    right = {mask & shared for mask in right}
    size = masks.count(shared)
    if size > _COUNTED_MAX or len(left) * len(right) <= 4 * size << size:
        return {a & b for a in left for b in right}
    return _counted(left, right, shared)


def _counted(left: Set[Mask], right: Set[Mask], shared: Mask) -> set[Mask]:
    every = _submasks(shared)
    above_left = _sum_above([int(mask in left) for mask in every])
    above_right = _sum_above([int(mask in right) for mask in every])
    pairs = _undo_sum_above(list(map(mul, above_left, above_right)))
    return {mask for mask, number in zip(every, pairs, strict=True) if number}


def _submasks(mask: Mask) -> list[Mask]:
    """Return all submasks. The bits of the position in the list select nodes of the mask."""
    every = [0]
    for node in masks.nodes(mask):
        every += [each | 1 << node for each in every]
    return every


def _sum_above(values: list[int]) -> list[int]:
    """Return at each position the sum over all positions that have at least its bits."""
    for _ in range(len(values).bit_length() - 1):
        # Handle the lowest bit and make it the highest. After all rounds, each bit is in its place again.
        without, having = values[0::2], values[1::2]
        values = [*map(add, without, having), *having]
    return values


def _undo_sum_above(values: list[int]) -> list[int]:
    for _ in range(len(values).bit_length() - 1):
        without, having = values[0::2], values[1::2]
        values = [*map(sub, without, having), *having]
    return values
