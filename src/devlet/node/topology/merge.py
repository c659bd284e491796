"""One hint out of the hints of all resources: the nodes on which they meet best.

By definition every way to take one hint of each resource is a candidate, and `better` goes through them all. But most
of that product is never built. The comparison is an order (what beats the second beats all that the second beats), so
neither repeats nor sequence matter; and a preferred candidate beats all others. So first come the masks on which
everybody agrees, and only if there are none, all intersections.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce

from devlet.node.topology import masks
from devlet.node.topology.hints import Hint, Hints, Mask
from devlet.node.topology.intersections import intersections
from devlet.node.topology.machine import Machine

__all__ = ["Pick", "best_count", "better", "closest", "hint_lists", "merge", "narrowest"]

Pick = Callable[[Mask, Mask], Mask]  # of two different masks that are equally good otherwise, the one to take

_NO_PREFERENCE = (Hint(None, True),)
_IMPOSSIBLE = (Hint(None, False),)


def hint_lists(provided: Iterable[Hints | None]) -> list[Sequence[Hint]]:
    """A list for each resource, and one for each provider without any. None of them is empty."""
    return [hints for provider in provided for hints in _lists_of(provider)]


def _lists_of(hints: Hints | None) -> Iterable[Sequence[Hint]]:
    if not hints:
        return [_NO_PREFERENCE]
    return [_NO_PREFERENCE if each is None else each or _IMPOSSIBLE for each in hints.values()]


def best_count(lists: Iterable[Sequence[Hint]]) -> int:
    """How many nodes it takes at least: the most that any resource needs at its narrowest; 0 if it does not matter."""
    narrowest = (min((masks.count(hint.mask) for hint in hints if hint.mask is not None), default=0) for hints in lists)
    return max(narrowest, default=0)


def narrowest(current: Mask, candidate: Mask) -> Mask:
    return candidate if masks.narrower(candidate, current) else current


def closest(machine: Machine) -> Pick:
    """Among masks of equally many nodes, the one whose nodes are nearer to each other. Needs distances."""
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
    """Which of two to keep; `best` is the `best_count`. A candidate without nodes is none."""
    if not candidate.mask:
        return current
    if current is None or not current.mask:
        return candidate
    if current.preferred != candidate.preferred:
        return current if current.preferred else candidate
    if not current.preferred:
        now, then = (_misses(masks.count(hint.mask or 0), best) for hint in (current, candidate))
        if now != then:
            return current if now < then else candidate
    if current.mask == candidate.mask:
        return current
    return current if pick(current.mask, candidate.mask) == current.mask else candidate


def _misses(count: int, best: int) -> tuple[bool, int]:
    """How far a count is from the best one. Any that is below comes before all that are above."""
    return count > best, abs(count - best)


def merge(lists: Sequence[Sequence[Hint]], machine: Mask, pick: Pick = narrowest) -> Hint:
    """Not preferred and with the whole machine as mask, if there is no node on which all could be met."""
    best = best_count(lists)
    candidates = [Hint(mask, True) for mask in _agreed(lists, machine) if mask]
    if not candidates:
        candidates = [Hint(mask, False) for mask in _met(lists, machine)]
    found = reduce(lambda now, then: better(now, then, best, pick), candidates, None)
    return found or Hint(machine, False)


def _agreed(lists: Sequence[Sequence[Hint]], machine: Mask) -> set[Mask]:
    """What every list has as preferred. To a list with a preferred hint without mask, anything is right."""
    choices = [{hint.mask for hint in hints if hint.preferred} for hints in lists]
    wanted = {mask for own in choices for mask in own if mask is not None}
    agreed = {mask & machine for mask in wanted if all(mask in own or None in own for own in choices)}
    return agreed | {machine} if all(None in own for own in choices) else agreed


def _met(lists: Sequence[Sequence[Hint]], machine: Mask) -> set[Mask]:
    """The intersections of one hint of each list, for all ways to take them."""
    choices = ({machine if hint.mask is None else hint.mask & machine for hint in hints} for hints in lists)
    return reduce(intersections, choices, {machine})
