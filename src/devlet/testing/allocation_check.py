"""Is an allocation right? Every rule of the specification once more, against the finished result.

It does not search and knows nothing of the allocator (an import contract says so): given the problem, a node and the
complete results, it lists what is wrong. It cannot tell whether "does not fit" was right; `allocation_brute_force`
can. The reference breaks some of the rules on purpose or by mistake: `REFERENCE` asks only for what it keeps.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Final

from devlet.errors import DevletError
from devlet.objects.documents import Document
from devlet.objects.quantity import ZERO, Quantity
from devlet.testing.allocation_amounts import amounts, unknown_names
from devlet.testing.allocation_supply import (
    DeviceKey,
    Holdings,
    Offer,
    Pool,
    counters_of,
    holdings,
    key_of,
    pools,
)

__all__ = ["IMPROVED", "REFERENCE", "Given", "Matches", "Rules", "Want", "World", "check", "requests_of"]

MAX_RESULTS: Final = 32

Matches = Callable[[str, Document, str], bool]
"""Whether an expression selects a device of a driver. May raise: then it selects nothing."""


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
    result: Document

    def __str__(self) -> str:
        return f"claim {self.want.claim}, {self.want.ref}: {'/'.join(self.offer.key)}"


def check(
    problem: Document, node: str, results: Sequence[Document], matches: Matches, rules: Rules = IMPROVED
) -> list[str]:
    """What is wrong with the results, one per claim, for that node; nothing if all is right."""
    return World(problem, node, matches, rules).wrong(results)


def requests_of(claim: Document) -> list[tuple[str, list[tuple[str, Document]]]]:
    """Requests of a claim in order, each with its alternatives and how results name them."""
    return [
        (request["name"], [(f"{request['name']}/{sub['name']}", sub) for sub in request["firstAvailable"]])
        if request.get("firstAvailable")
        else (request["name"], [(request["name"], request["exactly"])])
        for request in claim["spec"]["devices"].get("requests") or []
    ]


class World:
    """A problem as one node sees it."""

    def __init__(self, problem: Document, node: str, matches: Matches, rules: Rules) -> None:
        self.rules = rules
        self.claims: list[Document] = problem["claims"]
        self._off = {name for name, on in (problem.get("features") or {}).items() if not on}
        self._node = next(n for n in problem["nodes"] if n["metadata"]["name"] == node)
        self._classes: dict[str, Document] = {c["metadata"]["name"]: c["spec"] for c in problem["classes"]}
        self._matches = matches
        self.pools: list[Pool] = pools(
            problem["slices"],
            self._node,
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

    def has_class(self, name: str) -> bool:
        return name in self._classes

    def wrong(self, results: Sequence[Document]) -> list[str]:
        if len(results) != len(self.claims):
            return [f"{len(results)} results for {len(self.claims)} claims"]
        given: list[list[Given]] = []
        problems: list[str] = []
        for index, (claim, result) in enumerate(zip(self.claims, results, strict=True)):
            try:
                given.append(list(self._given(index, claim, result)))
            except LookupError as e:
                return [f"claim {index}: {e}"]
            problems += self._claim(index, claim, given[-1], result)
        everything = [one for claim_ in given for one in claim_]
        return problems + self.conflicts(everything)

    def conflicts(self, given: Sequence[Given]) -> list[str]:
        """What cannot be together, over all claims."""
        return [*self._in_use(given), *self._shares(given), *self._capacity(given), *self._counters(given)]

    # one claim

    def _given(self, index: int, claim: Document, result: Document) -> Iterator[Given]:
        wants = {
            ref: Want(index, name, ref, document)
            for name, alternatives in requests_of(claim)
            for ref, document in alternatives
        }
        for one in result["devices"].get("results") or []:
            if one["request"] not in wants:
                raise LookupError(f"there is no request {one['request']}")
            if (offer := self.offers.get(key_of(one))) is None:
                raise LookupError(f"{'/'.join(key_of(one))} is no device of a usable pool of this node")
            yield Given(wants[one["request"]], offer, one)

    def _claim(self, index: int, claim: Document, given: list[Given], result: Document) -> Iterator[str]:
        if len(given) > MAX_RESULTS:
            yield f"claim {index}: {len(given)} results, {MAX_RESULTS} are allowed"
        yield from self._requests(index, claim, given)
        for one in given:
            yield from (f"{one}: {why}" for why in self.unusable(one.want, one.offer))
            yield from (f"{one}: {why}" for why in self._copied(one))
        yield from (f"claim {index}: {why}" for why in self.constraints(claim, given))
        if (selector := result.get("nodeSelector")) != (expected := self.node_selector(given)):
            yield f"claim {index}: node selector {selector}, expected {expected}"
        if (config := result["devices"].get("config") or []) != (wanted := self.config(claim, given)):
            yield f"claim {index}: config {config}, expected {wanted}"

    def _requests(self, index: int, claim: Document, given: list[Given]) -> Iterator[str]:
        order = [one.want.request for one in given]
        names = [name for name, _ in requests_of(claim)]
        if order != sorted(order, key=names.index):
            yield f"claim {index}: results are not in the order of the requests"
        for name, alternatives in requests_of(claim):
            used = {one.want.ref for one in given if one.want.request == name}
            if len(used) != 1:
                if used or not any(self._empty(document) for _, document in alternatives):
                    yield f"claim {index}: {len(used)} alternatives are used for request {name}"
                continue
            ref = used.pop()
            want = Want(index, name, ref, dict(alternatives)[ref])
            yield from self._number(want, [one.offer.key for one in given if one.want.ref == ref])

    def _empty(self, document: Document) -> bool:
        return document.get("allocationMode") != "All" and document.get("count") == 0

    def _number(self, want: Want, got: list[DeviceKey]) -> Iterator[str]:
        if len(set(got)) < len(got):
            yield f"claim {want.claim}, {want.ref}: a device is there twice"
        if want.document.get("allocationMode") == "All":
            if blocked := self.blocks_all(want):
                yield f"claim {want.claim}, {want.ref}: asks for all devices, but {blocked}"
            if Counter(got) != Counter(offer.key for offer in self.all_offers(want)):
                yield f"claim {want.claim}, {want.ref}: these are not all devices"
        elif len(got) != want.document.get("count", 1):
            yield f"claim {want.claim}, {want.ref}: {len(got)} devices, expected {want.document.get('count', 1)}"

    def blocks_all(self, want: Want) -> str:
        """Why it is not known what all devices are; empty if it is."""
        for pool in self.pools:
            could_match = any(self.selected(want, offer) for offer in pool.offers)
            if pool.broken and (could_match or not self.rules.only_matching_pools):
                return f"{'/'.join(pool.key)}: {pool.broken}"
        return ""

    def all_offers(self, want: Want) -> list[Offer]:
        """What a request for all devices must get."""
        return [
            offer
            for offer in self.offers.values()
            if self.selected(want, offer) and not any(self._insufficient(want, offer))
        ]

    # one device

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
                self._selects(expression, offer) for expression in self._expressions(want)
            )
        return self._selected[known]

    def _expressions(self, want: Want) -> list[str]:
        class_ = self._classes.get(want.document["deviceClassName"])
        if class_ is None:
            return ["false"]
        selectors = [*(class_.get("selectors") or []), *(want.document.get("selectors") or [])]
        return [selector["cel"]["expression"] for selector in selectors]

    def _selects(self, expression: str, offer: Offer) -> bool:
        try:
            return self._matches(expression, offer.device, offer.pool.driver)
        except DevletError:
            return False

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
                if not exempt:
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

    def _copied(self, one: Given) -> Iterator[str]:
        wanted = {
            "adminAccess": True if one.want.admin else None,
            "tolerations": one.want.document.get("tolerations"),
            "bindingConditions": one.offer.device.get("bindingConditions"),
            "bindingFailureConditions": one.offer.device.get("bindingFailureConditions"),
        }
        if not self.on("DeviceBindingAndStatus"):
            wanted["bindingConditions"] = wanted["bindingFailureConditions"] = None
        for key, value in wanted.items():
            if (one.result.get(key) or None) != (value or None):
                yield f"{key} is {one.result.get(key)}, expected {value}"

    # all devices together

    def _exempt(self, one: Given) -> bool:
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
            if not self.rules.admin_is_exempt:
                if any(i for i in normal):
                    yield f"{uses[0]}: is given once more to a request without admin access"
                if len({one.want.claim for one in uses}) < len(uses):
                    yield f"{uses[0]}: is given twice to one claim"

    def _shares(self, given: Sequence[Given]) -> Iterator[str]:
        ids: set[tuple[DeviceKey, str]] = set()
        for one in given:
            share = one.result.get("shareID")
            if not self.shared(one.offer):
                if share or one.result.get("consumedCapacity"):
                    yield f"{one}: a share of a device that is not shared"
                continue
            if share is None and self._exempt(one):
                continue
            if not _is_uuid(share):
                yield f"{one}: share ID {share} is missing or malformed"
            elif self.rules.unique_shares and (one.offer.key, share) in ids:
                yield f"{one}: share ID {share} is there twice"
            ids.add((one.offer.key, str(share)))
            yield from self._recorded(one)

    def _recorded(self, one: Given) -> Iterator[str]:
        got = {name: Quantity.parse(value) for name, value in (one.result.get("consumedCapacity") or {}).items()}
        if not (self._exempt(one) and not got) and got != self.consumption(one.want, one.offer):
            yield f"{one}: consumed capacity {got}, expected {self.consumption(one.want, one.offer)}"

    def _capacity(self, given: Sequence[Given]) -> Iterator[str]:
        totals: dict[tuple[DeviceKey, str], Quantity] = {}
        values: dict[tuple[DeviceKey, str], Quantity] = {}
        for one in given:
            if self.shared(one.offer) and not self._exempt(one):
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
            if self._exempt(one) or not one.offer.device.get("consumesCounters"):
                continue
            if self.shared(one.offer) and one.offer.key in seen:
                continue
            seen.add(one.offer.key)
            yield one.offer.device

    # constraints and what else is in a result

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

    def node_selector(self, given: Sequence[Given]) -> Document | None:
        here = self._node["metadata"]["name"]
        if any(one.offer.place.get("nodeName") or one.offer.device.get("bindsToNode") for one in given):
            field = {"key": "metadata.name", "operator": "In", "values": [here]}
            return {"nodeSelectorTerms": [{"matchFields": [field]}]}
        term: dict[str, list[Document]] = {}
        for one in given:
            for theirs in (one.offer.place.get("nodeSelector") or {}).get("nodeSelectorTerms") or []:
                _merge(term, theirs)
        return {"nodeSelectorTerms": [term]} if term else None

    def config(self, claim: Document, given: Sequence[Given]) -> list[Document]:
        chosen = [(name, *_chosen(name, alternatives, given)) for name, alternatives in requests_of(claim)]
        classes: dict[str, list[str]] = {}
        for _, ref, document in chosen:
            classes.setdefault(document["deviceClassName"], []).append(ref)
        found = [
            {"source": "FromClass", "requests": refs, **config}
            for class_, refs in classes.items()
            for config in self._classes[class_].get("config") or []
        ]
        for config in claim["spec"]["devices"].get("config") or []:
            names = config.get("requests") or []
            copies = sum(name in names or ref in names for name, ref, _ in chosen) if names else 1
            found += [{"source": "FromClaim", **config}] * (min(copies, 1) if self.rules.single_config else copies)
        return found


def _chosen(name: str, alternatives: list[tuple[str, Document]], given: Sequence[Given]) -> tuple[str, Document]:
    used = {one.want.ref for one in given if one.want.request == name}
    return next(((ref, document) for ref, document in alternatives if ref in used), alternatives[0])


def _merge(term: dict[str, list[Document]], theirs: Mapping[str, list[Document]]) -> None:
    for kind in ("matchExpressions", "matchFields"):
        for requirement in theirs.get(kind) or []:
            if not any(_same(requirement, other) for other in term.get(kind, [])):
                term.setdefault(kind, []).append(requirement)


def _same(a: Document, b: Document) -> bool:
    return (a["key"], a["operator"], set(a.get("values") or [])) == (
        b["key"],
        b["operator"],
        set(b.get("values") or []),
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


def _is_uuid(text: object) -> bool:
    try:
        return str(uuid.UUID(str(text))) == text
    except ValueError:
        return False
