"""Why a request can or cannot have each device, in words: the first reason that applies.

The devices of the node's pools come first, as the search sees them. Then come devices that the node cannot use at all:
those of incomplete, invalid or replaced pools, and those of other nodes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from devlet.alloc.allocator import Allocator, Fit
from devlet.alloc.amounts import Amount
from devlet.alloc.explain.agreement import objections, refusals
from devlet.alloc.explain.hints import Names
from devlet.alloc.explain.parts import Missing, deciding_part
from devlet.alloc.explain.report import RequestReport, Verdict, VerdictKind
from devlet.alloc.explain.standing import Option, Scene, Seen, Standing
from devlet.alloc.inventory import DeviceEntry, Holder, PoolKey, SliceEntry
from devlet.alloc.pools import Pool
from devlet.alloc.requests import claim_name
from devlet.alloc.taints import untolerated
from devlet.errors import InvalidSelector
from devlet.objects.types.slice import DeviceTaint
from devlet.objects.values.quantity import Quantity

__all__ = ["Elsewhere", "Verdicts", "wanted_text"]

LISTED_MAX = 64  # devices of other nodes that are listed; the rest is counted


@dataclass
class Elsewhere:
    """What the inventory has beside the pools of a node. Computed once for all nodes."""

    allocator: Allocator
    give_up: Callable[[], bool] | None = None
    _newest: dict[PoolKey, int] = field(default_factory=dict)
    _names: dict[str, Names] = field(default_factory=dict)

    def generation(self, key: PoolKey) -> int:
        if key not in self._newest:
            self._newest[key] = max(entry.generation for entry in self.allocator.inventory.slices_of(key))
        return self._newest[key]

    def names(self, driver: str) -> Names:
        """Return the names that the driver's devices publish."""
        if driver not in self._names:
            slices = (entry for entry in self.allocator.inventory.slices() if entry.slice.spec.driver == driver)
            self._names[driver] = Names([device.input for entry in slices for device in entry.devices])
        return self._names[driver]

    def mistaken(self, driver: str, missing: Sequence[Missing]) -> list[Missing]:
        """Return the missing names that do not simply belong to another driver."""
        return [each for each in missing if each.domain == driver or not self.names(each.domain).count(each)]

    def hints(self, driver: str, missing: Sequence[Missing]) -> list[str]:
        return [self.names(driver).hint(each) for each in self.mistaken(driver, missing)]


class Verdicts:
    """The verdicts for one node. `fit` is the allocation found for it, if any."""

    def __init__(self, scene: Scene, elsewhere: Elsewhere, fit: Fit | None = None) -> None:
        self._scene = scene
        self._allocator = scene.allocator
        self._elsewhere = elsewhere
        self._standing = Standing(scene.allocator)
        self._fit = fit

    def reports(self) -> tuple[RequestReport, ...]:
        others, uncounted = self._others()
        return tuple(
            RequestReport(
                claim_name(self._scene.claims.claims[option.claim]),
                option.wanted.full_name,
                wanted_text(option),
                self._scene.number(option, seen),
                (*self._of_node(option, seen), *others),
                uncounted,
            )
            for alternatives in self._scene.seen.values()
            for option, seen in alternatives
        )

    # Devices of the node's pools

    def _of_node(self, option: Option, seen: list[Seen]) -> Iterator[Verdict]:
        chosen = self._chosen(option)
        fit, scene = self._fit, self._scene
        objected = refusals(scene, option, seen, fit) if fit else objections(scene, option, seen)
        for each in seen:
            if each.entry in chosen:
                yield Verdict(each.entry.identity, VerdictKind.CHOSEN, self._consumed(chosen[each.entry]))
            elif each.entry in objected:
                text = f"constraint #{objected[each.entry][0]}: {objected[each.entry][1]}"
                yield Verdict(each.entry.identity, VerdictKind.CONSTRAINT, text)
            else:
                yield self.verdict(option, each)

    def _chosen(self, option: Option) -> dict[DeviceEntry, Sequence[Amount]]:
        if not self._fit:
            return {}
        return {
            chosen.entry: chosen.amounts or ()
            for chosen in self._fit.chosen[option.claim]
            if chosen.step.full_name == option.wanted.full_name and chosen.step.position == option.request
        }

    def _consumed(self, found: Sequence[Amount]) -> str:
        return ", ".join(f"{amount.consumed} of {amount.name}" for amount in found)

    def verdict(self, option: Option, seen: Seen) -> Verdict:
        """Return the verdict in words, ignoring constraints."""
        entry, kind = seen.entry, seen.kind
        identity = entry.identity
        match kind:
            case VerdictKind.FREE:
                return Verdict(identity, kind, self._passed_over(option, entry))
            case VerdictKind.OTHER_NODE:
                return Verdict(identity, kind, place_text(entry.slice, entry))
            case VerdictKind.BINDING_CONDITIONS:
                return Verdict(identity, kind, f"waits for {', '.join(entry.device.binding_conditions)}")
            case VerdictKind.CLASS_SELECTOR | VerdictKind.REQUEST_SELECTOR:
                return self._unmatched(option, entry)
            case VerdictKind.SELECTOR_ERROR:
                return self._failing(option, entry)
            case VerdictKind.IN_USE:
                holders = self._allocator.inventory.holders(identity)
                return Verdict(identity, kind, f"by {holders_text(holders)}", holders=holders)
            case VerdictKind.TAINT:
                taint = untolerated(entry.device, option.wanted.tolerations)
                assert taint is not None
                return Verdict(identity, kind, f"{taint_text(taint)}; {toleration_text(taint)} would be needed")
            case VerdictKind.CAPACITY:
                holders = self._allocator.inventory.holders(identity)
                return Verdict(identity, kind, self._capacity_text(option, entry, holders), holders=holders)
            case _:
                return self._counters(option, seen.pool, entry)

    def _passed_over(self, option: Option, entry: DeviceEntry) -> str:
        if not self._fit:
            return ""
        taken = [c.entry.identity for claim in self._fit.chosen for c in claim]
        if entry.identity in taken:
            return "chosen for another request"
        return "not needed" if self._chosen(option) else "another alternative was chosen"

    # Selectors

    def _unmatched(self, option: Option, entry: DeviceEntry) -> Verdict:
        for of_class, expressions in _expressions(option):
            for index, expression in enumerate(expressions):
                program = self._allocator.selectors.program(expression)
                if program.matches([entry.input])[0] is not True:
                    part = deciding_part(program, entry.input, self._elsewhere.give_up)
                    kind = VerdictKind.CLASS_SELECTOR if of_class else VerdictKind.REQUEST_SELECTOR
                    hints = self._elsewhere.hints(entry.identity.driver, part.missing)
                    facts = "; ".join(dict.fromkeys((*part.facts, *hints)))
                    return Verdict(
                        entry.identity,
                        kind,
                        f"{whose_text(option, of_class)}selector #{index}" + f": {facts}" * bool(facts),
                        expression,
                        part.text,
                    )
        raise AssertionError(f"device {entry.identity} matches all selectors")

    def _failing(self, option: Option, entry: DeviceEntry) -> Verdict:
        match = self._allocator.selectors.match(entry.slice, option.wanted.selectors)
        failure = match.failures[entry.bit]
        of = option.wanted.selectors.of_class if failure.of_class else option.wanted.selectors.of_request
        expression = of[failure.index]
        text = f"{whose_text(option, failure.of_class)}selector #{failure.index}: {failure.text}"
        try:
            program = self._allocator.selectors.program(expression)
            part = deciding_part(program, entry.input, self._elsewhere.give_up)
        except InvalidSelector:
            return Verdict(entry.identity, VerdictKind.SELECTOR_ERROR, text, expression)
        hints = "".join(f"; {hint}" for hint in self._elsewhere.hints(entry.identity.driver, part.missing))
        return Verdict(entry.identity, VerdictKind.SELECTOR_ERROR, text + hints, expression, part.text)

    # Amounts

    def _capacity_text(self, option: Option, entry: DeviceEntry, holders: Sequence[Holder]) -> str:
        problem = self._standing.capacity_problem(option.wanted, entry)
        if not isinstance(problem, Amount):
            return problem or ""
        format = problem.consumed.format
        limit = Quantity(problem.limit, format)
        left = Quantity(problem.limit - (entry.consumed or {}).get(problem.name, 0), format)
        held = f", {holders_text(holders)} hold{'s' * (len(holders) == 1)} the rest" if holders else ""
        return f"needs {problem.consumed} of {problem.name}, {left} of {limit} left{held}"

    def _counters(self, option: Option, pool: Pool, entry: DeviceEntry) -> Verdict:
        lacking = self._standing.lacking(option.wanted, pool, entry)
        assert lacking is not None
        if isinstance(lacking, str):
            return Verdict(entry.identity, VerdictKind.COUNTERS, lacking)
        (set, name), needed, left = lacking
        holders = tuple(
            holder
            for device in _pool_devices(pool)
            if device.is_allocated and any(key == (set, name) for key, _ in device.counters)
            for holder in self._allocator.inventory.holders(device.identity)
        )
        held = f", {holders_text(holders)} hold{'s' * (len(holders) == 1)} the rest" if holders else ""
        amounts = f"needs {amount_text(needed)} of counter {name} in set {set}, {amount_text(left)} left"
        return Verdict(entry.identity, VerdictKind.COUNTERS, amounts + held, holders=holders)

    # Devices that the node cannot have

    def _others(self) -> tuple[list[Verdict], int]:
        """Return verdicts, and the number of devices of other nodes that are not listed."""
        layout = self._scene.layout
        own = {slice.entry.name for pool in layout.pools for slice in pool.slices}
        broken = {pool.key: pool for pool in layout.pools if pool.problem}
        listed: list[Verdict] = []
        distant: list[Verdict] = []
        count = 0
        for entry in self._allocator.inventory.slices():
            if entry.name in own or not entry.devices:
                continue
            kind, text = self._why_not(entry, broken)
            if kind is VerdictKind.OTHER_NODE:
                count += len(entry.devices)
                if count <= LISTED_MAX:
                    distant += [Verdict(d.identity, kind, place_text(entry, d)) for d in entry.devices]
            else:
                listed += [Verdict(device.identity, kind, text) for device in entry.devices]
        return (listed + distant, 0) if count <= LISTED_MAX else (listed, count)

    def _why_not(self, entry: SliceEntry, broken: dict[PoolKey, Pool]) -> tuple[VerdictKind, str]:
        newest = self._elsewhere.generation(entry.pool)
        if entry.generation < newest:
            return VerdictKind.POOL_OBSOLETE, f"generation {entry.generation}, replaced by generation {newest}"
        if pool := broken.get(entry.pool):
            kind = VerdictKind.POOL_INCOMPLETE if pool.is_incomplete else VerdictKind.POOL_INVALID
            return kind, f"pool {pool.name} {pool.problem}"
        return VerdictKind.OTHER_NODE, ""


def _expressions(option: Option) -> Iterable[tuple[bool, tuple[str, ...]]]:
    selectors = option.wanted.selectors
    return ((True, selectors.of_class), (False, selectors.of_request))


def _pool_devices(pool: Pool) -> Iterator[DeviceEntry]:
    for entry in (*(slice.entry for slice in pool.slices), *pool.others):
        yield from entry.devices


def amount_text(nano: int) -> str:
    """Format an amount, with a binary suffix if that is shorter."""
    decimal, binary = str(Quantity(nano)), str(Quantity(nano, "BinarySI"))
    return binary if len(binary) < len(decimal) else decimal


def whose_text(option: Option, of_class: bool) -> str:
    return f"class {option.wanted.device_class.name}, " if of_class else ""


def holders_text(holders: Sequence[Holder]) -> str:
    names = list(dict.fromkeys(f"claim {holder.namespace}/{holder.claim}" for holder in holders))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def taint_text(taint: DeviceTaint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def toleration_text(taint: DeviceTaint) -> str:
    return f"a toleration of {taint_text(taint)}"


def place_text(entry: SliceEntry, device: DeviceEntry) -> str:
    """Say which nodes a device is for."""
    spec, d = entry.slice.spec, device.device
    name = spec.node_name or (d.node_name if spec.per_device_node_selection else None)
    return f"is for node {name}" if name else "its node selector does not match the node"


def wanted_text(option: Option) -> str:
    """Describe what is wanted, such as `2 devices of class gpu.example.com`."""
    wanted = option.wanted
    number = "all devices" if wanted.is_all else "1 device" if wanted.count == 1 else f"{wanted.count} devices"
    admin = " with admin access" if wanted.admin_access else ""
    capacity = "".join(f", {amount} of {name}" for name, amount in wanted.capacity)
    return f"{number} of class {wanted.device_class.name}{capacity}{admin}"
