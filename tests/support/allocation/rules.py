"""The rules of allocation, for the checker and for brute force: which device a request may have, and which together.

Every rule is about the finished choice; none depends on the order in which devices were tried. The reference breaks
some of them on purpose or by mistake: `REFERENCE` asks only for what it keeps.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import combinations
from typing import Final

from devlet.errors import DevletError
from devlet.objects.documents import Document
from devlet.objects.values.quantity import ZERO, Quantity
from tests.support.allocation.amounts import amounts, unknown_names
from tests.support.allocation.supply import DeviceKey, Holdings, Offer, Pool, counters_of, holdings, pools

__all__ = ["IMPROVED", "MAX_RESULTS", "REFERENCE", "Given", "Matches", "Rules", "Want", "World", "requests_of"]

MAX_RESULTS: Final = 32

Matches = Callable[[str, Document, str], bool]
"""Whether an expression selects a device of a driver. May raise a DevletError: then it selects nothing."""


@dataclass(frozen=True)
class Rules:
    """Where the reference and what is better than it differ. The numbers are those of the specification, chapter 11."""

    only_matching_pools: bool = True  # 7
    own_counter_sets: bool = True  # 8
    admin_is_exempt: bool = True  # 9
    exact_distinct: bool = True  # 10
    strict_capacity: bool = True  # 12
    single_config: bool = True  # 13
    whole_generation: bool = True  # 18
    unique_shares: bool = True  # recorded answers have one share ID for all, because real ones are random


IMPROVED: Final = Rules()
REFERENCE: Final = Rules(*(False for _ in fields(Rules)))


@dataclass(frozen=True)
class Want:
    """A request, or one alternative of a request, and how results name it."""

    claim: int
    request: str
    ref: str
    document: Document

    @property
    def admin(self) -> bool:
        return bool(self.document.get("adminAccess"))

    @property
    def capacity(self) -> Mapping[str, str]:
        return (self.document.get("capacity") or {}).get("requests") or {}


@dataclass(frozen=True)
class Given:
    """A device that a want got."""

    want: Want
    offer: Offer
    result: Document = field(default_factory=dict)

    def __str__(self) -> str:
        return f"claim {self.want.claim}, {self.want.ref}: {'/'.join(self.offer.key)}"


def requests_of(claim: Document) -> list[tuple[str, list[tuple[str, Document]]]]:
    """Requests of a claim in order, each with its alternatives and how results name them."""
    return [
        (request["name"], [(f"{request['name']}/{sub['name']}", sub) for sub in request["firstAvailable"]])
        if request.get("firstAvailable")
        else (request["name"], [(request["name"], request["exactly"])])
        for request in claim["spec"]["devices"].get("requests") or []
    ]


class World:
    """A problem as one node sees it, and the rules that hold there."""

    def __init__(self, problem: Document, node: str, matches: Matches, rules: Rules) -> None:
        self.rules = rules
        self.claims: list[Document] = problem["claims"]
        self._off = {name for name, on in (problem.get("features") or {}).items() if not on}
        self.node = next(n for n in problem["nodes"] if n["metadata"]["name"] == node)
        self.classes: dict[str, Document] = {c["metadata"]["name"]: c["spec"] for c in problem["classes"]}
        self._matches = matches
        self.pools: list[Pool] = pools(
            problem["slices"],
            self.node,
            partitions=self.on("PartitionableDevices"),
            whole_generation=rules.whole_generation,
        )
        self.held: Holdings = holdings(problem["allocated"], sharing=self.on("ConsumableCapacity"))
        self.offers: dict[DeviceKey, Offer] = {
            offer.key: offer for pool in self.pools if not pool.broken for offer in pool.offers
        }
        self._selected: dict[tuple[int, DeviceKey], bool] = {}

    def on(self, feature: str) -> bool:
        return feature not in self._off

    def conflicts(self, given: Sequence[Given]) -> list[str]:
        """What cannot be together, over all claims."""
        return [*self._in_use(given), *self._capacity(given), *self._counters(given)]

    def blocks_all(self, want: Want) -> str:
        """Why it is not known what all devices are; empty if it is."""
        for pool in self.pools:
            if pool.broken and (not self.rules.only_matching_pools or self._could_match(want, pool)):
                return f"{'/'.join(pool.key)}: {pool.broken}"
        return ""

    def _could_match(self, want: Want, pool: Pool) -> bool:
        expressions = self._expressions(want)
        return any(
            all(self._selects(expression, device, pool.key.driver, failing=True) for expression in expressions)
            for device in pool.devices
        )

    def all_offers(self, want: Want) -> list[Offer]:
        """What a request for all devices must get."""
        return [
            offer
            for offer in self.offers.values()
            if self.selected(want, offer) and not any(self._insufficient(want, offer))
        ]

    def unusable(self, want: Want, offer: Offer) -> Iterator[str]:
        """Why the device cannot be given to the want, whatever else is given."""
        if not self.selected(want, offer):
            yield "is not selected by class and request, or not on this node"
        if self.on("DeviceTaints") and (taint := _not_tolerated(want.document, offer.device)):
            yield f"taint {taint} is not tolerated"
        if not self.on("PartitionableDevices") and offer.device.get("consumesCounters"):
            yield "uses counters while the feature is off"
        if offer.key in self.held.exclusive and not want.admin:
            yield "is allocated already"
        # With negative amounts around, a share that is too large alone may be right.
        yield from self._insufficient(want, offer, alone=self.rules.strict_capacity or not self.shared(offer))

    def selected(self, want: Want, offer: Offer) -> bool:
        if offer.device.get("bindingConditions") and not self.on("DeviceBindingAndStatus"):
            return False
        known = (id(want.document), offer.key)
        if known not in self._selected:
            self._selected[known] = offer.reaches_node and all(
                self._selects(expression, offer.device, offer.pool.driver) for expression in self._expressions(want)
            )
        return self._selected[known]

    def _expressions(self, want: Want) -> list[str]:
        class_ = self.classes.get(want.document["deviceClassName"])
        if class_ is None:
            return ["false"]
        selectors = [*(class_.get("selectors") or []), *(want.document.get("selectors") or [])]
        return [selector["cel"]["expression"] for selector in selectors]

    def _selects(self, expression: str, device: Document, driver: str, *, failing: bool = False) -> bool:
        """`failing` is the answer if the expression cannot be evaluated."""
        try:
            return self._matches(expression, device, driver)
        except DevletError:
            return failing

    def _insufficient(self, want: Want, offer: Offer, *, alone: bool = True) -> Iterator[str]:
        """Capacity that is missing, not allowed, and with `alone` not enough if nobody else of this call uses it."""
        if not self.on("ConsumableCapacity"):
            return
        capacity = offer.device.get("capacity") or {}
        if names := unknown_names(capacity, want.capacity, offer.pool.driver, normalise=self.rules.strict_capacity):
            yield f"has no capacity {', '.join(names)}"
        exempt = want.admin and self.rules.admin_is_exempt
        for name, consumed in self.consumption(want, offer).items():
            if consumed is None:
                yield f"policy of {name} does not allow the amount"
            elif self.rules.strict_capacity and consumed < ZERO:
                yield f"negative amount of {name}"
            elif (
                alone and not exempt and self._before(offer, name) + consumed > Quantity.parse(capacity[name]["value"])
            ):
                yield f"has not enough {name}"

    def consumption(self, want: Want, offer: Offer) -> dict[str, Quantity | None]:
        capacity = offer.device.get("capacity") or {}
        return amounts(capacity, want.capacity, offer.pool.driver, normalise=self.rules.strict_capacity)

    def _before(self, offer: Offer, name: str) -> Quantity:
        return self.held.consumed.get(offer.key, {}).get(name, ZERO)

    def exempt(self, one: Given) -> bool:
        return one.want.admin and self.rules.admin_is_exempt

    def shared(self, offer: Offer) -> bool:
        return self.on("ConsumableCapacity") and bool(offer.device.get("allowMultipleAllocations"))

    def _in_use(self, given: Sequence[Given]) -> Iterator[str]:
        users: dict[DeviceKey, list[Given]] = {}
        for one in given:
            if not self.shared(one.offer):
                users.setdefault(one.offer.key, []).append(one)
        for uses in users.values():
            normal = [i for i, one in enumerate(uses) if not one.want.admin]
            if len(normal) > 1:
                yield f"{uses[0]}: is given {len(normal)} times"
            if not self.rules.admin_is_exempt and any(i for i in normal):
                yield f"{uses[0]}: is given once more to a request without admin access"
            if len({one.want.claim for one in uses}) < len(uses):
                yield f"{uses[0]}: is given twice to one claim"

    def _capacity(self, given: Sequence[Given]) -> Iterator[str]:
        totals: dict[tuple[DeviceKey, str], Quantity] = {}
        values: dict[tuple[DeviceKey, str], Quantity] = {}
        for one in given:
            if self.shared(one.offer) and not self.exempt(one):
                for name, consumed in self.consumption(one.want, one.offer).items():
                    spot = (one.offer.key, name)
                    values[spot] = Quantity.parse(one.offer.device["capacity"][name]["value"])
                    totals[spot] = totals.get(spot, self._before(one.offer, name)) + (consumed or ZERO)
        for spot, total in totals.items():
            if total > values[spot]:
                yield f"{'/'.join(spot[0])}: {total} of {spot[1]} are consumed, there are {values[spot]}"

    def _counters(self, given: Sequence[Given]) -> Iterator[str]:
        if not self.on("PartitionableDevices"):
            return
        for pool in self.pools:
            new = list(self._charged([one for one in given if one.offer.pool == pool.key]))
            if not new:
                continue
            relevant = {set_ for device in new for set_ in counters_of(device)} if self.rules.own_counter_sets else None
            held = [device for device in pool.devices if self.held.taken(DeviceKey(*pool.key, device["name"]))]
            for (set_, name), used in _sum([*held, *new]).items():
                there = pool.counters[set_][name]
                if (relevant is None or set_ in relevant) and used > there:
                    yield f"{'/'.join(pool.key)}: {used} of {set_}/{name} are used, there are {there}"

    def _charged(self, given: Iterable[Given]) -> Iterator[Document]:
        """The devices whose counters are used up, once per time. A shared device uses them once."""
        seen: set[DeviceKey] = set(self.held.shares)
        for one in given:
            if self.exempt(one) or not one.offer.device.get("consumesCounters"):
                continue
            if self.shared(one.offer) and one.offer.key in seen:
                continue
            seen.add(one.offer.key)
            yield one.offer.device

    def constraints(self, claim: Document, given: Sequence[Given]) -> Iterator[str]:
        for constraint in claim["spec"]["devices"].get("constraints") or []:
            names = constraint.get("requests")
            covered = [one for one in given if not names or one.want.request in names or one.want.ref in names]
            attribute = constraint.get("matchAttribute") or constraint["distinctAttribute"]
            values = [_values(one.offer, attribute) for one in covered]
            if not all(values):
                yield f"a device has no attribute {attribute}"
            elif constraint.get("matchAttribute"):
                if values and not frozenset.intersection(*values):
                    yield f"devices have nothing in common in {attribute}"
            elif self._overlap(covered, values):
                yield f"devices are not distinct in {attribute}"

    def _overlap(self, covered: Sequence[Given], values: Sequence[frozenset[object]]) -> bool:
        several = {request for request, n in Counter(one.want.request for one in covered).items() if n > 1}
        return any(
            a & b
            for (one, a), (other, b) in combinations(zip(covered, values, strict=True), 2)
            # The reference forgets values of requests with several devices.
            if self.rules.exact_distinct or not {one.want.request, other.want.request} & several
        )


def _sum(devices: Iterable[Document]) -> dict[tuple[str, str], Quantity]:
    total: dict[tuple[str, str], Quantity] = {}
    for device in devices:
        for set_, counters in counters_of(device).items():
            for name, used in counters.items():
                total[set_, name] = total.get((set_, name), ZERO) + used
    return total


def _not_tolerated(request: Document, device: Document) -> str:
    for taint in device.get("taints") or []:
        if taint.get("effect") in ("NoSchedule", "NoExecute"):
            if not any(_tolerates(toleration, taint) for toleration in request.get("tolerations") or []):
                return f"{taint.get('key')}:{taint['effect']}"
    return ""


def _tolerates(toleration: Document, taint: Document) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]) or toleration.get("key") not in (
        None,
        "",
        taint["key"],
    ):
        return False
    operator = toleration.get("operator") or "Equal"
    return operator == "Exists" or (operator == "Equal" and toleration.get("value", "") == taint.get("value", ""))


def _values(offer: Offer, attribute: str) -> frozenset[object]:
    """Of an attribute, each with its type; a single value is a list of one."""
    attributes = offer.device.get("attributes") or {}
    found = attributes.get(attribute)
    if found is None:
        found = attributes.get(attribute.removeprefix(f"{offer.pool.driver}/")) or {}
    for kind, value in found.items():
        if value or not isinstance(value, list):
            values = value if isinstance(value, list) else [value]
            return frozenset((kind.removesuffix("s"), str(one)) for one in values)
    return frozenset()
