"""Find devices for all requests at once: depth first, in a fixed order, with undo. The first complete answer wins.

The order is the reference's: claims, requests and alternatives as they are written, devices as their pools are sorted
and published, and within a request combinations, not permutations. The search is cut short where that cannot change
the answer:

- Interchangeable devices are tried once.
- States that failed are remembered.
- Before the search, the devices that are needed are counted against the devices that exist.

Two cases could change the answer, and there nothing is cut: trying a device may end in an error, and the reference's
constraints may depend on what was tried before.

A frame of the stack is a choice, of a device or of an alternative.

    enter request ──▶ alternatives ──▶ device 1 ──▶ device 2 ──▶ … ──▶ next request ──▶ … ──▶ found
                          ▲               │ failed: undo, next device; none left: back to the frame below
                          └───────────────┘ too many results: back to the alternatives at once
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeVar

from devlet.alloc.amounts import Amount
from devlet.alloc.constraints import Constraint
from devlet.alloc.features import Features, Rules
from devlet.alloc.inventory import DeviceEntry, PoolKey
from devlet.alloc.kinds import find_kinds
from devlet.alloc.pools import CounterKey, Pool
from devlet.alloc.requests import RESULTS_MAX
from devlet.alloc.shortage import Shortage
from devlet.alloc.steps import Step
from devlet.alloc.taints import untolerated
from devlet.errors import InvalidInput

__all__ = ["Chosen", "Exhausted", "Limits", "Search"]

PATIENCE: Final = 48

MEMORY: Final = 100_000  # limit of remembered states
TAKEN_MAX: Final = 512  # states with more devices are not remembered: recording them would take longer than the search

T = TypeVar("T")


class _Hopeless(Exception):
    """Counting alone shows that the claims do not fit."""


class Exhausted(Exception):
    """The search was given up before it ended, so it is unknown whether the claims fit."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a search: it ends after `steps` devices were tried, or when `give_up`, which is called occasionally,
    says so.

    Devices in use are skipped and do not count. Nothing is remembered during the first `patience` steps: most searches
    end sooner, and remembering costs more than it saves.
    """

    steps: int = 2_000_000
    give_up: Callable[[], bool] | None = None
    patience: int = PATIENCE


@dataclass(frozen=True, slots=True)
class Chosen:
    """A device chosen for a step. `amounts` is what is consumed of a shared device; None if the device is not
    shared."""

    step: Step
    entry: DeviceEntry
    amounts: tuple[Amount, ...] | None = None


@dataclass(slots=True)
class _Device:
    """The choice of the device with this index for a request; `cursor` is the next candidate."""

    claim: int
    step: Step
    index: int
    cursor: int
    memo: Hashable
    undo: "_Undo | None" = None
    failed: set[Hashable] | None = None


@dataclass(slots=True)
class _Alternatives:
    """The choice of an alternative. `all_limited` holds as long as each alternative ended because of too many
    results."""

    claim: int
    request: int
    memo: Hashable
    next: int = 0
    all_limited: bool = True


@dataclass(slots=True)
class _Undo:
    entry: DeviceEntry
    constraints: int
    has_counters: bool
    taker: int | None
    shares: bool


class _Act(Enum):
    ENTER = auto()
    BEGIN = auto()
    DEVICE = auto()
    ALTERNATIVE = auto()
    FAIL = auto()
    LIMIT = auto()


class Search:
    """A depth-first search. `requests` has the alternatives of each request of each claim; a request with several is a
    list even if only one is left.

    Without `cut` everything is tried: the answer is the same, but takes longer.
    """

    def __init__(
        self,
        requests: Sequence[Sequence[Sequence[Step]]],
        constraints: Sequence[Sequence[Constraint]],
        pools: Mapping[PoolKey, Pool],
        features: Features,
        rules: Rules,
        limits: Limits = Limits(),
        *,
        cut: bool = True,
    ) -> None:
        self._requests = requests
        self._constraints = constraints
        self._pools = pools
        self._features = features
        self._rules = rules
        self._limits = limits
        self._cut = cut
        self._taken: dict[DeviceEntry, list[int]] = {}
        self._sharing: dict[DeviceEntry, list[tuple[Amount, ...]]] = {}
        self._consumed: dict[tuple[PoolKey, CounterKey], int] = {}
        self._available: dict[PoolKey, Mapping[CounterKey, int]] = {}
        self._hopeless: dict[Hashable, tuple[Hashable, ...]] = {}
        self._kinds: dict[DeviceEntry, int] | None = None
        self._ordered: set[Step] = set()
        self._may_cut = False
        self._refused: InvalidInput | None = None
        self.results: list[list[Chosen]] = [[] for _ in requests]
        self.steps = 0

    def run(self) -> bool:
        """Return whether the claims fit; if so, `results` has the devices per claim. Raises Exhausted and
        InvalidInput."""
        self._may_cut = self._cut and self._cutting_is_safe()
        if self._may_cut and not self._enough():
            return False
        try:
            found = self._walk()
        except _Hopeless:
            found = False
        if not found and self._refused:
            raise self._refused
        return found

    def _cutting_is_safe(self) -> bool:
        for requests, constraints in zip(self._requests, self._constraints, strict=True):
            steps = [step for alternatives in requests for step in alternatives]
            if any(step.failures for step in steps):
                return False
            for constraint in constraints:
                covered = [step for step in steps if constraint.covers(step.request, step.full_name)]
                if any(step.is_all for step in covered):
                    return False
                entries = (entry for step in covered for entry in step.candidates)
                if not constraint.restores(entries, max((step.number for step in covered), default=0)):
                    return False
        return True

    def _enough(self) -> bool:
        """Return whether every request has an alternative with enough candidates if it were alone."""
        return all(
            any(step.number <= len(step.candidates) for step in alternatives)
            for requests in self._requests
            for alternatives in requests
        )

    def _walk(self) -> bool:
        stack: list[_Device | _Alternatives] = []
        act, claim, request, limited = _Act.ENTER, 0, 0, 0
        step: Step | None = None
        index = cursor = 0
        memo: Hashable = None
        while True:
            if act is _Act.ENTER:
                while claim < len(self._requests) and request >= len(self._requests[claim]):
                    claim, request = claim + 1, 0
                if claim >= len(self._requests):
                    return True
                memo = self._state(claim, request)
                if memo is not None and memo in self._hopeless:
                    self._fail_again(claim, memo)
                    act = _Act.FAIL
                elif len(self._requests[claim][request]) == 1 and not self._requests[claim][request][0].is_sub:
                    step, index, cursor, act = self._requests[claim][request][0], 0, 0, _Act.BEGIN
                else:
                    stack.append(_Alternatives(claim, request, memo))
                    act = _Act.ALTERNATIVE
            elif act is _Act.BEGIN:
                assert step is not None
                if step.is_all and not step.candidates:
                    act = _Act.FAIL
                elif index >= step.number:
                    claim, request, act = step.claim, step.position + 1, _Act.ENTER
                elif len(self.results[step.claim]) + step.number - index > RESULTS_MAX:
                    limited, act = step.claim, _Act.LIMIT
                elif index and (memo := self._state(step.claim, step.position, step)) in self._hopeless:
                    act = _Act.FAIL
                else:
                    stack.append(_Device(step.claim, step, index, index if step.is_all else cursor, memo))
                    act = _Act.DEVICE
            elif act is _Act.DEVICE:
                choice = stack[-1]
                assert isinstance(choice, _Device)
                if self._next_device(choice):
                    step, index, cursor, act = choice.step, choice.index + 1, choice.cursor, _Act.BEGIN
                    memo = None
                else:
                    act = self._give_up(stack)
            elif act is _Act.ALTERNATIVE:
                frame = stack[-1]
                assert isinstance(frame, _Alternatives)
                alternatives = self._requests[frame.claim][frame.request]
                if frame.next < len(alternatives):
                    step, index, cursor, act = alternatives[frame.next], 0, 0, _Act.BEGIN
                    memo = None
                    frame.next += 1
                elif frame.all_limited:
                    stack.pop()
                    limited, act = frame.claim, _Act.LIMIT
                else:
                    act = self._give_up(stack)
            elif not stack:
                return False
            elif act is _Act.FAIL or stack[-1].claim != limited:
                act = self._after_failure(stack)
            else:
                act = self._after_limit(stack)

    def _give_up(self, stack: list[_Device | _Alternatives]) -> _Act:
        """Backtrack: the topmost choice has nothing left to try."""
        frame = stack.pop()
        if frame.memo is not None and len(self._hopeless) < MEMORY:
            after = () if self._may_cut else tuple(each.state() for each in self._constraints[frame.claim])
            self._hopeless[frame.memo] = after
        return _Act.FAIL

    def _fail_again(self, claim: int, memo: Hashable) -> None:
        """Leave the constraints in the state in which the same attempt left them before."""
        for constraint, after in zip(self._constraints[claim], self._hopeless[memo], strict=False):
            constraint.reset(after)

    def _after_failure(self, stack: list[_Device | _Alternatives]) -> _Act:
        frame = stack[-1]
        if isinstance(frame, _Alternatives):
            frame.all_limited = False
            return _Act.ALTERNATIVE
        assert frame.undo is not None
        entry = frame.undo.entry
        self._undo(frame)
        if frame.step.is_all:
            return self._give_up(stack)
        if self._kinds is not None:
            frame.failed = frame.failed if frame.failed is not None else set()
            frame.failed.add(self._kind(entry))
        return _Act.DEVICE

    def _after_limit(self, stack: list[_Device | _Alternatives]) -> _Act:
        frame = stack[-1]
        if isinstance(frame, _Alternatives):
            return _Act.ALTERNATIVE
        self._undo(frame)
        stack.pop()
        return _Act.LIMIT

    # One device

    def _next_device(self, frame: _Device) -> bool:
        """Take the next candidate that can be used."""
        step = frame.step
        if step.is_all:
            self._count()
            return self._take(frame, step.candidates[frame.index])
        candidates, taken, is_admin = step.candidates, self._taken, step.is_admin
        while frame.cursor < len(candidates):
            entry = candidates[frame.cursor]
            frame.cursor += 1
            if entry in taken and not is_admin and not taken[entry][0] & 1:
                continue  # the result of `_is_in_use`, without the call, for the many devices that an earlier step has
            if frame.failed is not None and self._kind(entry) in frame.failed:
                continue
            if self._is_in_use(step, entry):
                continue
            self._count()
            if step.failures and entry in step.failures:
                raise InvalidInput(step.failures[entry])
            if self._fits(step, entry) and self._take(frame, entry):
                return True
        return False

    def _count(self) -> None:
        self.steps += 1
        if self.steps > self._limits.steps:
            raise Exhausted
        if self.steps % 256 == 0 and self._limits.give_up and self._limits.give_up():
            raise Exhausted
        if self.steps == self._limits.patience and self._may_cut:
            self._find_kinds()

    def _is_in_use(self, step: Step, entry: DeviceEntry) -> bool:
        takers = self._taken.get(entry)
        if step.is_admin:
            return takers is not None and any(taker >> 1 == step.claim for taker in takers)
        if takers and (
            not self._rules.admin_is_exempt or any(not taker & 1 or taker >> 1 == step.claim for taker in takers)
        ):
            return True
        return entry.is_taken or (entry.shares > 0 and not self._features.consumable_capacity)

    def _take(self, frame: _Device, entry: DeviceEntry) -> bool:
        step = frame.step
        shares = entry.shareable and self._features.consumable_capacity
        if not (shares and step.is_admin) and self._is_in_use(step, entry):
            return False
        if entry.counters and not self._features.partitionable_devices:
            return False
        needs_counters = bool(entry.counters) and not (self._exempt(step) or (shares and self._is_shared(entry)))
        if needs_counters and not self._take_counters(entry):
            return False
        undo = _Undo(entry, 0, needs_counters, None, False)
        if self._features.device_taints and untolerated(entry.device, step.alternative.tolerations):
            self._restore(step, undo)
            return False
        for constraint in self._constraints[step.claim]:
            if constraint.covers(step.request, step.full_name) and not constraint.add(entry, step.request):
                self._restore(step, undo)
                if step.is_all:
                    self._refuse(step, entry)
                return False
            undo.constraints += 1
        if not self._fits(step, entry):
            self._restore(step, undo)
            return False
        amounts = None
        if shares:
            found = step.amounts(entry)
            assert not isinstance(found, str)
            amounts = found
            if not self._exempt(step):
                self._sharing.setdefault(entry, []).append(amounts)
                undo.shares = True
        else:
            undo.taker = step.claim << 1 | step.is_admin
            self._taken.setdefault(entry, []).append(undo.taker)
        self.results[step.claim].append(Chosen(step, entry, amounts))
        frame.undo = undo
        return True

    def _refuse(self, step: Step, entry: DeviceEntry) -> None:
        """Refuse a device of mode All that a constraint forbids: an error, at once or if nothing else is found."""
        text = "because a claim constraint would not be satisfied"
        error = InvalidInput(f"{step.where}: cannot add device {entry.identity} {text}")
        if not self._rules.all_may_fail:
            raise error
        self._refused = self._refused or error

    def _undo(self, frame: _Device) -> None:
        assert frame.undo is not None
        self.results[frame.claim].pop()
        self._restore(frame.step, frame.undo)
        frame.undo = None

    def _restore(self, step: Step, undo: _Undo) -> None:
        if undo.shares:
            _drop_last(self._sharing, undo.entry)
        if undo.taker is not None:
            _drop_last(self._taken, undo.entry)
        for constraint in reversed(self._constraints[step.claim][: undo.constraints]):
            if constraint.covers(step.request, step.full_name):
                constraint.remove(undo.entry, step.request)
        if undo.has_counters:
            self._give_counters(undo.entry)

    def _exempt(self, step: Step) -> bool:
        return step.is_admin and self._rules.admin_is_exempt

    # Capacity and counters

    def _is_shared(self, entry: DeviceEntry) -> bool:
        if entry.shares and self._rules.shares_without_amounts:
            return True
        return entry.consumed is not None or entry in self._sharing

    def _fits(self, step: Step, entry: DeviceEntry) -> bool:
        """Return whether the capacities suffice, given what claims hold and what this search has assigned."""
        if not self._features.consumable_capacity:
            return True
        if entry.is_simple and entry.consumed is None and not step.alternative.capacity:
            return True
        amounts = step.amounts(entry)
        if isinstance(amounts, str):
            return False
        if self._exempt(step):
            return True
        consumed, sharing = entry.consumed or {}, self._sharing.get(entry, ())
        for i, amount in enumerate(amounts):
            total = (
                consumed.get(amount.name, 0) + amount.consumed.nano + sum(share[i].consumed.nano for share in sharing)
            )
            if total > amount.limit:
                return False
        return True

    def _take_counters(self, entry: DeviceEntry) -> bool:
        key = entry.slice.pool
        available = self._left(key)
        for counter, amount in entry.counters:
            self._consumed[key, counter] = self._consumed.get((key, counter), 0) + amount
        checked = self._sets_of(entry, available) if self._rules.own_counter_sets else available
        if all(available[counter] >= self._consumed.get((key, counter), 0) for counter in checked):
            return True
        self._give_counters(entry)
        return False

    def _left(self, pool: PoolKey) -> Mapping[CounterKey, int]:
        """Return the pool's counters before the search."""
        if pool not in self._available:
            self._available[pool] = self._pools[pool].available()
        return self._available[pool]

    def _sets_of(self, entry: DeviceEntry, available: Mapping[CounterKey, int]) -> list[CounterKey]:
        sets = {counter[0] for counter, _ in entry.counters}
        return [counter for counter in available if counter[0] in sets]

    def _give_counters(self, entry: DeviceEntry) -> None:
        for counter, amount in entry.counters:
            self._consumed[entry.slice.pool, counter] -= amount

    # Interchangeable devices, and earlier failures

    def _state(self, claim: int, request: int, within: Step | None = None) -> Hashable:
        """Return everything that decides whether the rest can be found; None while nothing is remembered.

        Within a step the first devices of each kind are taken first, so taking the same number of each kind later
        leaves less. This does not hold for shares.
        """
        if self.steps < self._limits.patience or not self._cut or len(self._taken) > TAKEN_MAX:
            return None
        if within and within not in self._ordered:
            return None
        kinds = self._kinds or {}  # without kinds each device is its own kind
        taken = Counter((kinds.get(entry, entry), *takers) for entry, takers in self._taken.items())
        sharing = Counter(
            (kinds.get(entry, entry), tuple(sorted(_total(shares)))) for entry, shares in self._sharing.items()
        )
        begun = request or within
        constraints = tuple(constraint.state() for constraint in self._constraints[claim]) if begun else ()
        found = len(self.results[claim])
        return (claim, request, within, found, frozenset(taken.items()), frozenset(sharing.items()), constraints)

    def _kind(self, entry: DeviceEntry) -> Hashable:
        """Return the kind of a device. Devices of one kind are interchangeable as long as they are not partly
        assigned."""
        if entry in self._sharing or entry in self._taken:
            return entry
        return self._kinds.get(entry, entry) if self._kinds is not None else entry

    def _find_kinds(self) -> None:
        self._kinds = find_kinds(self._requests, self._constraints)
        steps = (step for requests in self._requests for alternatives in requests for step in alternatives)
        self._ordered = {step for step in steps if not any(entry.shareable for entry in step.candidates)}
        if Shortage(self._requests, self._constraints, self._kinds, self._left).is_certain():
            raise _Hopeless


def _total(shares: Sequence[tuple[Amount, ...]]) -> list[tuple[str, int]]:
    totals: Counter[str] = Counter()
    for share in shares:
        for amount in share:
            totals[amount.name] += amount.consumed.nano
    return list(totals.items())


def _drop_last(index: dict[DeviceEntry, list[T]], entry: DeviceEntry) -> None:
    values = index[entry]
    values.pop()
    if not values:
        del index[entry]
