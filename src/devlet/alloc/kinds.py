"""Devices that are equal in everything that the search examines, so that one can replace the other."""

from collections.abc import Hashable, Sequence

from devlet.alloc.constraints import Constraint
from devlet.alloc.inventory import DeviceEntry
from devlet.alloc.steps import Step

__all__ = ["find_kinds"]


def find_kinds(
    requests: Sequence[Sequence[Sequence[Step]]], constraints: Sequence[Sequence[Constraint]]
) -> dict[DeviceEntry, int]:
    """Number the candidates so that two candidates have the same number if they are interchangeable."""
    steps = [step for claim in requests for alternatives in claim for step in alternatives]
    for_steps: dict[DeviceEntry, int] = {}
    for i, step in enumerate(steps):
        for entry in step.candidates:
            for_steps[entry] = for_steps.get(entry, 0) | 1 << i
    needs_capacity = any(step.alternative.capacity for step in steps)
    of_claims = [constraint for claim in constraints for constraint in claim]
    numbers: dict[Hashable, int] = {}
    return {
        entry: numbers.setdefault(_likeness(entry, bits, needs_capacity, of_claims), len(numbers))
        for entry, bits in for_steps.items()
    }


def _likeness(entry: DeviceEntry, bits: int, needs_capacity: bool, constraints: Sequence[Constraint]) -> Hashable:
    capacity: Hashable = ()
    if entry.shareable or needs_capacity or not entry.is_simple or entry.consumed is not None:
        consumed = tuple(sorted((entry.consumed or {}).items()))
        capacity = (entry.identity.driver, tuple(entry.device.capacity.items()), consumed)
    return (
        bits,
        entry.slice.pool if entry.counters else None,
        entry.counters,
        entry.shareable,
        entry.shares,
        entry.consumed is None,
        entry.is_taken,
        entry.device.taints,
        capacity,
        tuple(constraint.values(entry) for constraint in constraints),
    )
