"""A quick test of whether enough devices exist. It is necessary but not sufficient: it ignores constraints and
counters."""

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise

__all__ = ["can_suffice"]


def can_suffice(wanted: Sequence[tuple[int, frozenset[Hashable]]], supply: Mapping[Hashable, int]) -> bool:
    """Return whether the supply can meet all wishes at once. A wish is a number of devices and the kinds that qualify.

    This is a maximum flow from wishes to kinds, found with augmenting paths. There are few of both.
    """
    given: dict[tuple[int, Hashable], int] = {}
    left = dict(supply)
    return all(_meet(wish, number, wanted, given, left) for wish, (number, _) in enumerate(wanted))


def _meet(
    wish: int,
    number: int,
    wanted: Sequence[tuple[int, frozenset[Hashable]]],
    given: dict[tuple[int, Hashable], int],
    left: dict[Hashable, int],
) -> bool:
    while number:
        path = _path(wish, wanted, given, left)
        if path is None:
            return False
        amount = min(number, left[path[-1][1]], *(given[pair] for pair in _released(path)))
        for pair in path:
            given[pair] = given.get(pair, 0) + amount
        for pair in _released(path):
            given[pair] -= amount
        left[path[-1][1]] -= amount
        number -= amount
    return True


def _released(path: list[tuple[int, Hashable]]) -> list[tuple[int, Hashable]]:
    """Return the kinds that other wishes give up along a path: each wish had the kind that the wish before it takes."""
    return [(later[0], earlier[1]) for earlier, later in pairwise(path)]


def _path(
    wish: int,
    wanted: Sequence[tuple[int, frozenset[Hashable]]],
    given: Mapping[tuple[int, Hashable], int],
    left: Mapping[Hashable, int],
) -> list[tuple[int, Hashable]] | None:
    """Search breadth first for a path from a wish to a kind with devices left. In each step a wish takes a kind."""
    paths: list[list[tuple[int, Hashable]]] = [[]]
    seen: set[Hashable] = set()
    for path in paths:
        current = _holder(path, wish, given, wanted)
        for who in current:
            for kind in wanted[who][1]:
                if kind not in seen:
                    seen.add(kind)
                    longer = [*path, (who, kind)]
                    if left.get(kind, 0) > 0:
                        return longer
                    paths.append(longer)
    return None


def _holder(
    path: list[tuple[int, Hashable]],
    wish: int,
    given: Mapping[tuple[int, Hashable], int],
    wanted: Sequence[tuple[int, frozenset[Hashable]]],
) -> list[int]:
    if not path:
        return [wish]
    kind = path[-1][1]
    return [who for who in range(len(wanted)) if given.get((who, kind), 0) > 0]
