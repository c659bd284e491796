"""Is an allocation right? Every rule of the specification once more, against the finished result.

It does not search and knows nothing of the allocator (an import contract says so): given the problem, a node and the
complete results, it lists what is wrong. It cannot tell whether "does not fit" was right; `brute_force`
can.
"""

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from devlet.objects.documents import Document
from devlet.objects.values.quantity import Quantity
from tests.support.allocation.rules import (
    IMPROVED,
    MAX_RESULTS,
    REFERENCE,
    Given,
    Matches,
    Rules,
    Want,
    World,
    requests_of,
)
from tests.support.allocation.supply import DeviceKey, key_of

__all__ = ["IMPROVED", "REFERENCE", "Matches", "Rules", "check"]


def check(
    problem: Document, node: str, results: Sequence[Document], matches: Matches, rules: Rules = IMPROVED
) -> list[str]:
    """What is wrong with the results, one per claim, for that node; nothing if all is right."""
    return _Check(World(problem, node, matches, rules)).wrong(results)


class _Check:
    def __init__(self, world: World) -> None:
        self._world = world

    def wrong(self, results: Sequence[Document]) -> list[str]:
        if len(results) != len(self._world.claims):
            return [f"{len(results)} results for {len(self._world.claims)} claims"]
        given: list[list[Given]] = []
        problems: list[str] = []
        for index, (claim, result) in enumerate(zip(self._world.claims, results, strict=True)):
            try:
                given.append(list(self._given(index, claim, result)))
            except LookupError as e:
                return [f"claim {index}: {e}"]
            problems += self._claim(index, claim, given[-1], result)
        everything = [one for claim_ in given for one in claim_]
        return [*problems, *self._shares(everything), *self._world.conflicts(everything)]

    def _given(self, index: int, claim: Document, result: Document) -> Iterator[Given]:
        wants = {
            ref: Want(index, name, ref, document)
            for name, alternatives in requests_of(claim)
            for ref, document in alternatives
        }
        for one in result["devices"].get("results") or []:
            if one["request"] not in wants:
                raise LookupError(f"there is no request {one['request']}")
            if (offer := self._world.offers.get(key_of(one))) is None:
                raise LookupError(f"{'/'.join(key_of(one))} is no device of a usable pool of this node")
            yield Given(wants[one["request"]], offer, one)

    def _claim(self, index: int, claim: Document, given: list[Given], result: Document) -> Iterator[str]:
        if len(given) > MAX_RESULTS:
            yield f"claim {index}: {len(given)} results, {MAX_RESULTS} are allowed"
        yield from self._requests(index, claim, given)
        for one in given:
            yield from (f"{one}: {why}" for why in self._world.unusable(one.want, one.offer))
            yield from (f"{one}: {why}" for why in self._copied(one))
        yield from (f"claim {index}: {why}" for why in self._world.constraints(claim, given))
        if (selector := result.get("nodeSelector")) != (expected := self._node_selector(given)):
            yield f"claim {index}: node selector {selector}, expected {expected}"
        if (config := result["devices"].get("config") or []) != (wanted := self._config(claim, given)):
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
            if blocked := self._world.blocks_all(want):
                yield f"claim {want.claim}, {want.ref}: asks for all devices, but {blocked}"
            if Counter(got) != Counter(offer.key for offer in self._world.all_offers(want)):
                yield f"claim {want.claim}, {want.ref}: these are not all devices"
        elif len(got) != want.document.get("count", 1):
            yield f"claim {want.claim}, {want.ref}: {len(got)} devices, expected {want.document.get('count', 1)}"

    def _copied(self, one: Given) -> Iterator[str]:
        wanted = {
            "adminAccess": True if one.want.admin else None,
            "tolerations": one.want.document.get("tolerations"),
            "bindingConditions": one.offer.device.get("bindingConditions"),
            "bindingFailureConditions": one.offer.device.get("bindingFailureConditions"),
        }
        if not self._world.on("DeviceBindingAndStatus"):
            wanted["bindingConditions"] = wanted["bindingFailureConditions"] = None
        for key, value in wanted.items():
            if (one.result.get(key) or None) != (value or None):
                yield f"{key} is {one.result.get(key)}, expected {value}"

    def _shares(self, given: Sequence[Given]) -> Iterator[str]:
        ids: set[tuple[DeviceKey, str]] = set()
        for one in given:
            share = one.result.get("shareID")
            if not self._world.shared(one.offer):
                if share or one.result.get("consumedCapacity"):
                    yield f"{one}: a share of a device that is not shared"
                continue
            if share is None and self._world.exempt(one):
                continue
            if not _is_uuid(share):
                yield f"{one}: share ID {share} is missing or malformed"
            elif self._world.rules.unique_shares and (one.offer.key, share) in ids:
                yield f"{one}: share ID {share} is there twice"
            ids.add((one.offer.key, str(share)))
            yield from self._recorded(one)

    def _recorded(self, one: Given) -> Iterator[str]:
        got = {name: Quantity.parse(value) for name, value in (one.result.get("consumedCapacity") or {}).items()}
        if not (self._world.exempt(one) and not got) and got != self._world.consumption(one.want, one.offer):
            yield f"{one}: consumed capacity {got}, expected {self._world.consumption(one.want, one.offer)}"

    def _node_selector(self, given: Sequence[Given]) -> Document | None:
        here = self._world.node["metadata"]["name"]
        if any(one.offer.place.get("nodeName") or one.offer.device.get("bindsToNode") for one in given):
            field = {"key": "metadata.name", "operator": "In", "values": [here]}
            return {"nodeSelectorTerms": [{"matchFields": [field]}]}
        term: dict[str, list[Document]] = {}
        for one in given:
            for theirs in (one.offer.place.get("nodeSelector") or {}).get("nodeSelectorTerms") or []:
                _merge(term, theirs)
        return {"nodeSelectorTerms": [term]} if term else None

    def _config(self, claim: Document, given: Sequence[Given]) -> list[Document]:
        chosen = [(name, *_chosen(name, alternatives, given)) for name, alternatives in requests_of(claim)]
        classes: dict[str, list[str]] = {}
        for _, ref, document in chosen:
            classes.setdefault(document["deviceClassName"], []).append(ref)
        found = [
            {"source": "FromClass", "requests": refs, **config}
            for class_, refs in classes.items()
            for config in self._world.classes[class_].get("config") or []
        ]
        for config in claim["spec"]["devices"].get("config") or []:
            names = config.get("requests") or []
            copies = sum(name in names or ref in names for name, ref, _ in chosen) if names else 1
            found += [{"source": "FromClaim", **config}] * (
                min(copies, 1) if self._world.rules.single_config else copies
            )
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


def _is_uuid(text: object) -> bool:
    try:
        return str(uuid.UUID(str(text))) == text
    except ValueError:
        return False
