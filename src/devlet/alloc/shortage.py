"""What counting alone can show: too few devices, values or counters for all wishes at once.

Each test is necessary but not sufficient and ignores the others, so passing it proves nothing. Only requests without
alternatives and without admin access are counted: others may be satisfied in another way, or with devices that are in
use.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence

from devlet.alloc.bounds import can_suffice
from devlet.alloc.constraints import Constraint, Distinct, Match
from devlet.alloc.inventory import DeviceEntry, PoolKey, Values
from devlet.alloc.pools import CounterKey
from devlet.alloc.steps import Step

__all__ = ["Shortage"]

UNLIMITED = 1 << 30

Available = Callable[[PoolKey], Mapping[CounterKey, int]]


class Shortage:
    """Counts devices. `kinds` are those of all candidates, `available` is what is left of a pool's counters."""

    def __init__(
        self,
        requests: Sequence[Sequence[Sequence[Step]]],
        constraints: Sequence[Sequence[Constraint]],
        kinds: Mapping[DeviceEntry, int],
        available: Available,
    ) -> None:
        alone = (alternatives[0] for claim in requests for alternatives in claim if len(alternatives) == 1)
        self._steps = [step for step in alone if not step.is_admin]
        self._constraints = constraints
        self._kinds = kinds
        self._example = {kind: entry for entry, kind in kinds.items()}
        self._of_step = {step: frozenset(kinds[entry] for entry in step.candidates) for step in self._steps}
        self._available = available

    def is_certain(self) -> bool:
        return (
            not self._suffices(self._of_step)
            or any(self._of_counters(pool) for pool in self._pools())
            or any(
                self._of_values(constraint, list(self._covered(claim, constraint)))
                for claim, of_claim in enumerate(self._constraints)
                for constraint in of_claim
            )
        )

    def _suffices(self, kinds: Mapping[Step, frozenset[int]]) -> bool:
        supply: Counter[Hashable] = Counter()
        for entry, kind in self._kinds.items():
            supply[kind] += UNLIMITED if entry.shareable else 1
        return can_suffice([(step.number, frozenset[Hashable](kinds[step])) for step in self._steps], supply)

    # Values

    def _covered(self, claim: int, constraint: Constraint) -> Iterator[Step]:
        return (step for step in self._steps if step.claim == claim and constraint.covers(step.request, step.full_name))

    def _of_values(self, constraint: Constraint, covered: Sequence[Step]) -> bool:
        """Return whether values are too few. The reference's own constraints are skipped, because they do not always
        depend on the values."""
        values = {kind: constraint.values(entry) or frozenset() for kind, entry in self._example.items()}
        if isinstance(constraint, Distinct):
            return not self._enough_values(covered, values)
        return isinstance(constraint, Match) and not self._common_value(covered, values)

    def _enough_values(self, covered: Sequence[Step], values: Mapping[int, Values]) -> bool:
        """Return whether there are enough values for each device to have its own."""
        wanted = [
            (step.number, frozenset[Hashable](value for kind in self._of_step[step] for value in values[kind]))
            for step in covered
        ]
        return can_suffice(wanted, Counter[Hashable]({value: 1 for of_kind in values.values() for value in of_kind}))

    def _common_value(self, covered: Sequence[Step], values: Mapping[int, Values]) -> bool:
        """Return whether enough devices have some value in common."""
        wanting = [step for step in covered if step.number > 0]
        if not wanting:
            return True
        counts = [
            Counter(value for entry in step.candidates for value in values[self._kinds[entry]]) for step in wanting
        ]
        return any(
            self._suffices({**self._of_step, **self._having(value, wanting, values)})
            for value in counts[0]
            if all(count[value] >= step.number for step, count in zip(wanting, counts, strict=True))
        )

    def _having(
        self, value: Hashable, steps: Sequence[Step], values: Mapping[int, Values]
    ) -> dict[Step, frozenset[int]]:
        return {step: frozenset(kind for kind in self._of_step[step] if value in values[kind]) for step in steps}

    # Counters

    def _pools(self) -> set[PoolKey]:
        return {entry.slice.pool for entry in self._kinds if entry.counters}

    def _of_counters(self, pool: PoolKey) -> bool:
        """Return whether the cheapest devices take more than is left, for each request or for all together."""
        uses = {entry: _use(entry, pool) for entry in self._kinds}
        wanted = [(step.number, step.candidates) for step in self._steps]
        if not any(entry.shareable for entry in uses):
            everyone = {entry for _, candidates in wanted for entry in candidates}
            return self._exceeded(pool, uses, wanted) or self._exceeded(
                pool, uses, [(sum(number for number, _ in wanted), everyone)]
            )
        return self._exceeded(pool, uses, wanted)

    def _exceeded(
        self,
        pool: PoolKey,
        uses: Mapping[DeviceEntry, Mapping[CounterKey, int]],
        wanted: Iterable[tuple[int, Collection[DeviceEntry]]],
    ) -> bool:
        least: Counter[CounterKey] = Counter()
        for number, candidates in wanted:
            for counter in {counter for entry in candidates for counter in uses[entry]}:
                least[counter] += sum(sorted(uses[entry].get(counter, 0) for entry in candidates)[:number])
        available = self._available(pool)
        return any(amount > available[counter] for counter, amount in least.items() if amount > 0)


def _use(entry: DeviceEntry, pool: PoolKey) -> dict[CounterKey, int]:
    """Return the least that a device takes of the pool's counters. A share may take nothing."""
    return {} if entry.shareable or entry.slice.pool != pool else dict(entry.counters)
