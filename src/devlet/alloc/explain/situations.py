"""Groups of nodes that are alike in everything that affects some claims: the result for one holds for all.

Device names and attributes that no claim uses do not count: every device has its own serial number. Neither do the
values that constraints compare, as long as the same devices have equal values.
"""

from collections.abc import Hashable, Sequence

from devlet.alloc.explain.agreement import values_of
from devlet.alloc.explain.report import VerdictKind
from devlet.alloc.explain.standing import Scene, Seen
from devlet.alloc.inventory import Values
from devlet.alloc.pools import Pool
from devlet.objects.types.claim import DeviceConstraint

__all__ = ["situation"]


def situation(scene: Scene) -> Hashable:
    """Return a key that is equal for nodes with the same answer."""
    rows = [seen for alternatives in scene.seen.values() for _, seen in alternatives]
    constraints = [each for claim in scene.claims.claims for each in claim.spec.devices.constraints]
    positions = {id(pool): i for i, pool in enumerate(scene.layout.pools)}
    asks_capacity = any(option.wanted.capacity for options in scene.seen.values() for option, _ in options)
    numbers = _Numbers()
    return (
        tuple(_of_pool(scene, pool) for pool in scene.layout.pools),
        tuple(
            _of_device(scene, column, positions[id(column[0].pool)], constraints, numbers, asks_capacity)
            for column in zip(*rows, strict=True)
        ),
    )


class _Numbers:
    """Numbers values in the order in which they are first seen."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, object], int] = {}

    def of(self, constraint: int, values: Values | None) -> tuple[int, ...] | None:
        if values is None or len(values) == 0:
            return None if values is None else ()
        ordered = values if len(values) == 1 else sorted(values, key=str)
        return tuple(sorted(self._numbers.setdefault((constraint, v), len(self._numbers)) for v in ordered))


def _of_pool(scene: Scene, pool: Pool) -> Hashable:
    if not pool.problem:
        return tuple(sorted(pool.available().items())) if pool.counters else ()
    matches = [
        scene.allocator.selectors.match(entry, option.wanted.selectors)
        for options in scene.seen.values()
        for option, _ in options
        for entry in scene.allocator.inventory.slices_of(pool.key)
        if option.wanted.is_all
    ]
    return (pool.is_incomplete, tuple(bool(match.matching or match.failing) for match in matches))


def _of_device(
    scene: Scene,
    column: Sequence[Seen],
    position: int,
    constraints: Sequence[DeviceConstraint],
    numbers: _Numbers,
    asks_capacity: bool,
) -> Hashable:
    kinds = tuple(seen.kind for seen in column)
    entry = column[0].entry
    likeness: tuple[Hashable, ...] = (position, kinds, entry.is_taken)
    if not scene.allocator.rules.errors_do_not_match:
        options = (option for options in scene.seen.values() for option, _ in options)
        matches = (scene.allocator.selectors.match(entry.slice, option.wanted.selectors) for option in options)
        likeness = (*likeness, tuple(match.failing >> entry.bit & 1 for match in matches))
    if VerdictKind.FREE not in kinds:
        return likeness
    capacity: Hashable = ()
    if asks_capacity or entry.shareable or not entry.is_simple or entry.consumed is not None:
        amounts = tuple(sorted((entry.consumed or {}).items()))
        capacity = (entry.identity.driver, tuple(entry.device.capacity.items()), entry.consumed is None, amounts)
    values = tuple(numbers.of(c, values_of(scene, constraint, entry)) for c, constraint in enumerate(constraints))
    return (*likeness, entry.counters, entry.shareable, entry.shares, capacity, values)
