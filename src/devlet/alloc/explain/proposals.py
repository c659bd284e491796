"""Changes of claims or of the inventory that might help. The allocator then tests whether they do.

Proposals are ordered by size: correcting a spelling mistake is the smallest, another class the largest.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from devlet.alloc.amounts import Amount
from devlet.alloc.explain.conflict import Wish, wishes_of, with_only
from devlet.alloc.explain.copies import Difference
from devlet.alloc.explain.hints import similar
from devlet.alloc.explain.overdraft import left_beside
from devlet.alloc.explain.parts import deciding_part, terms
from devlet.alloc.explain.report import VerdictKind
from devlet.alloc.explain.standing import Option, Scene, Seen, Standing
from devlet.alloc.explain.verdicts import Elsewhere, Verdicts, taint_text
from devlet.alloc.inventory import Holder
from devlet.alloc.requests import claim_name
from devlet.alloc.taints import untolerated
from devlet.errors import InvalidSelector
from devlet.objects.types.claim import DeviceToleration, ResourceClaim
from devlet.objects.types.device_class import CELDeviceSelector, DeviceSelector
from devlet.objects.types.slice import DeviceTaint
from devlet.objects.values.quantity import Quantity

__all__ = ["Proposal", "missing_classes", "proposals"]

SPELLING, WAIT, TOLERATE, TERM, LESS, SELECTOR, CONSTRAINT, RELEASE, NOT_ALL, CLASS = range(1, 11)
TRIED_MAX = 8  # of each kind


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed change. `group` identifies its subject: the first proposal of a group that helps is enough."""

    text: str
    size: int
    claims: Sequence[ResourceClaim]
    difference: Difference | None = None
    group: str = ""


def proposals(scene: Scene, wishes: Sequence[Wish], elsewhere: Elsewhere) -> Iterator[Proposal]:
    """Yield proposals for a conflict on a node, in no particular order."""
    maker = _Maker(scene, elsewhere)
    requests = [wish for wish in wishes if not wish.is_constraint]
    for wish in requests:
        for index, (option, seen) in enumerate(scene.seen[wish.claim, wish.index]):
            yield from maker.of_option(option, seen, index)
    yield from maker.constraints([wish for wish in wishes if wish.is_constraint])
    yield from maker.pools()
    yield from maker.releases(requests)


def missing_classes(claims: Sequence[ResourceClaim], classes: Sequence[str]) -> Iterator[Proposal]:
    """Yield proposals that replace a class that does not exist with one of a similar name."""
    for i, claim in enumerate(claims):
        for j, request in enumerate(claim.spec.devices.requests):
            for k, part in enumerate(request.first_available or [request.exactly]):
                if part is not None and part.device_class_name not in classes:
                    for name in similar(part.device_class_name, classes):
                        text = (
                            f"use device class {name} in request {request.name}: there is no {part.device_class_name}"
                        )
                        yield Proposal(text, SPELLING, _edited(claims, i, j, k, device_class_name=name))


class _Maker:
    def __init__(self, scene: Scene, elsewhere: Elsewhere) -> None:
        self._scene = scene
        self._allocator = scene.allocator
        self._elsewhere = elsewhere
        self._claims = scene.claims.claims

    def of_option(self, option: Option, seen: Sequence[Seen], index: int) -> Iterator[Proposal]:
        yield from self._spelling(option, seen, index)
        yield from self._tolerations(option, seen, index)
        yield from self._selectors(option, index)
        yield from self._counts(option, seen, index)
        yield from self._capacity(option, seen, index)
        yield from self._classes(option, seen, index)

    def _edit(self, option: Option, index: int, **changes: Any) -> Sequence[ResourceClaim]:
        return _edited(self._claims, option.claim, option.request, index, **changes)

    def _name(self, option: Option) -> str:
        claim = f" of claim {claim_name(self._claims[option.claim])}" if len(self._claims) > 1 else ""
        return f"request {option.wanted.full_name}{claim}"

    # Selectors

    def _spelling(self, option: Option, seen: Sequence[Seen], index: int) -> Iterator[Proposal]:
        expressions = option.wanted.selectors.of_request
        wrong = (VerdictKind.SELECTOR_ERROR, VerdictKind.REQUEST_SELECTOR)
        devices = [each.entry for each in seen if each.kind in wrong][:TRIED_MAX]
        tried: set[tuple[int, str]] = set()
        for i, expression in enumerate(expressions):
            for device in devices:
                try:
                    program = self._allocator.selectors.program(expression)
                    part = deciding_part(program, device.input, self._elsewhere.give_up)
                except InvalidSelector:
                    break
                for missing in self._elsewhere.mistaken(device.identity.driver, part.missing):
                    written = missing.text.removeprefix("has(").removesuffix(")")
                    for suggestion in self._elsewhere.names(device.identity.driver).suggestions(missing):
                        if (i, suggestion) not in tried and written in expression:
                            tried.add((i, suggestion))
                            text = f"write {suggestion} instead of {written} in selector #{i} of {self._name(option)}"
                            selectors = _replaced(expressions, i, expression.replace(written, suggestion))
                            yield Proposal(text, SPELLING, self._edit(option, index, selectors=selectors))

    def _selectors(self, option: Option, index: int) -> Iterator[Proposal]:
        expressions = option.wanted.selectors.of_request
        for i, expression in enumerate(expressions):
            where = f"selector #{i} of {self._name(option)}"
            try:
                parts = terms(self._allocator.selectors.program(expression))
            except InvalidSelector:
                parts = []
            for j, part in enumerate(parts[:TRIED_MAX]) if len(parts) > 1 else ():
                rest = " && ".join(f"({each})" for each in parts[:j] + parts[j + 1 :])
                selectors = _replaced(expressions, i, rest)
                text = f"remove {part} from {where}"
                yield Proposal(text, TERM, self._edit(option, index, selectors=selectors), None, where)
            selectors = _replaced(expressions, i, None)
            yield Proposal(f"remove {where}", SELECTOR, self._edit(option, index, selectors=selectors), None, where)

    # The rest of a request

    def _tolerations(self, option: Option, seen: Sequence[Seen], index: int) -> Iterator[Proposal]:
        tolerated = option.wanted.tolerations
        sets: dict[tuple[DeviceTaint, ...], None] = {}
        for each in seen:
            if each.kind is VerdictKind.TAINT:
                lone = (msgspec.structs.replace(each.entry.device, taints=(t,)) for t in each.entry.device.taints)
                sets[tuple(taint for device in lone if (taint := untolerated(device, tolerated)))] = None
        everything = tuple(dict.fromkeys(taint for taints in sets for taint in taints))
        for taints in [*list(sets)[:TRIED_MAX], *([everything] if everything not in sets and everything else [])]:
            texts = list(dict.fromkeys(map(taint_text, taints)))
            more = tuple(dict.fromkeys(map(_toleration, taints)))
            text = f"let {self._name(option)} tolerate {', '.join(texts)}"
            yield Proposal(text, TOLERATE, self._edit(option, index, tolerations=(*tolerated, *more)))

    def _counts(self, option: Option, seen: Sequence[Seen], index: int) -> Iterator[Proposal]:
        free = sum(each.kind is VerdictKind.FREE for each in seen)
        if option.wanted.is_all:
            if free:
                text = f"ask for {free} instead of all in {self._name(option)}"
                yield Proposal(text, NOT_ALL, self._edit(option, index, allocation_mode="ExactCount", count=free))
            return
        most = min(option.wanted.count - 1, free)
        for count in range(most, max(most - TRIED_MAX, 0), -1):
            text = f"ask for {count} instead of {option.wanted.count} in {self._name(option)}"
            yield Proposal(text, LESS, self._edit(option, index, count=count), None, f"count {self._name(option)}")

    def _capacity(self, option: Option, seen: Sequence[Seen], index: int) -> Iterator[Proposal]:
        wanted = dict(option.wanted.capacity)
        standing = Standing(self._allocator)
        amounts: dict[tuple[str, int], None] = {}
        for each in seen:
            if each.kind is VerdictKind.CAPACITY and wanted:
                problem = standing.capacity_problem(option.wanted, each.entry)
                if isinstance(problem, Amount):
                    left = problem.limit - (each.entry.consumed or {}).get(problem.name, 0)
                    amounts[problem.name, left] = None
        if wanted:
            amounts.update(dict.fromkeys(left_beside(self._scene, option, seen)))
        for name, left in sorted(amounts, key=lambda each: -each[1])[:TRIED_MAX]:
            asked = next((each for each in wanted if each.rpartition("/")[2] == name.rpartition("/")[2]), None)
            if asked is None or left <= 0:
                continue
            less = Quantity(left, wanted[asked].format)
            requests = {each: str(less if each == asked else amount) for each, amount in wanted.items()}
            text = f"ask for {less} of {asked} instead of {wanted[asked]} in {self._name(option)}"
            part = self._part(option, index)
            capacity = msgspec.structs.replace(part.capacity, requests=requests)
            yield Proposal(
                text, LESS, self._edit(option, index, capacity=capacity), None, f"{name} {self._name(option)}"
            )

    def _part(self, option: Option, index: int) -> Any:
        request = self._claims[option.claim].spec.devices.requests[option.request]
        return request.first_available[index] if request.first_available else request.exactly

    def _classes(self, option: Option, seen: Sequence[Seen], index: int) -> Iterator[Proposal]:
        """Yield classes with a similar name, or with devices of the same driver."""
        own = option.wanted.device_class.name
        drivers = {each.entry.identity.driver for each in seen if each.kind is not VerdictKind.CLASS_SELECTOR}
        others = [name for name in self._allocator.inventory.classes if name != own]
        alike = similar(own, others)
        for name in [*alike, *(each for each in others if each not in alike)][:TRIED_MAX]:
            if name in alike or self._has_device(name, seen, drivers):
                text = f"use device class {name} instead of {own} in {self._name(option)}"
                yield Proposal(text, CLASS, self._edit(option, index, device_class_name=name))

    def _has_device(self, name: str, seen: Sequence[Seen], drivers: Collection[str]) -> bool:
        selectors = self._allocator.inventory.classes[name].spec.selectors
        expressions = tuple(each.cel.expression if each.cel else "" for each in selectors)
        set_ = self._allocator.selectors.set_of(expressions, ())
        slices = {id(each.entry.slice): each.entry.slice for each in seen if each.entry.identity.driver in drivers}
        return any(self._allocator.selectors.match(entry, set_).matching for entry in slices.values())

    # Changes outside of requests

    def constraints(self, wishes: Sequence[Wish]) -> Iterator[Proposal]:
        everything = wishes_of(self._claims)
        for wish in wishes:
            others = [each for each in everything if each != wish]
            yield Proposal(f"remove {wish.text}", CONSTRAINT, with_only(self._claims, others))

    def pools(self) -> Iterator[Proposal]:
        for pool in self._scene.layout.pools:
            if pool.is_incomplete:
                text = f"wait until pool {pool.name} is complete: it {pool.problem}"
                yield Proposal(text, WAIT, self._claims, Difference(complete=pool.key))

    def releases(self, wishes: Sequence[Wish]) -> Iterator[Proposal]:
        """Yield releases of a single claim, or of as many claims as necessary."""
        holders = self._holders(wishes)
        claims = sorted(holders, key=lambda claim: (len(holders[claim]), claim))
        for claim in claims[:TRIED_MAX]:
            yield self._release([claim], holders)
        for count in range(2, min(len(claims), TRIED_MAX) + 1):
            yield self._release(claims[:count], holders)

    def _release(self, claims: Sequence[tuple[str, str]], holders: dict[tuple[str, str], list[Holder]]) -> Proposal:
        names = ", ".join(f"{namespace}/{name}" for namespace, name in claims)
        devices = list(dict.fromkeys(h.result.device for claim in claims for h in holders[claim]))
        what = ", ".join(devices[:4]) + (f" and {len(devices) - 4} more" if len(devices) > 4 else "")
        one = len(claims) == 1
        text = f"release claim{'s' * (not one)} {names}, which hold{'s' * one} {what}"
        return Proposal(text, RELEASE, self._claims, Difference(released=frozenset(claims)), "release")

    def _holders(self, wishes: Sequence[Wish]) -> dict[tuple[str, str], list[Holder]]:
        verdicts = Verdicts(self._scene, self._elsewhere)
        found: dict[tuple[str, str], list[Holder]] = {}
        for wish in wishes:
            for option, seen in self._scene.seen[wish.claim, wish.index]:
                for each in seen:
                    if each.kind in (VerdictKind.IN_USE, VerdictKind.CAPACITY, VerdictKind.COUNTERS):
                        for holder in verdicts.verdict(option, each).holders:
                            held = found.setdefault((holder.namespace, holder.claim), [])
                            held += [holder] if holder not in held else []
        return found


def _replaced(expressions: Sequence[str], index: int, expression: str | None) -> tuple[DeviceSelector, ...]:
    changed = (expression if i == index else each for i, each in enumerate(expressions))
    return tuple(DeviceSelector(cel=CELDeviceSelector(expression=each)) for each in changed if each is not None)


def _toleration(taint: DeviceTaint) -> DeviceToleration:
    return DeviceToleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)


def _edited(
    claims: Sequence[ResourceClaim], claim: int, request: int, alternative: int, **changes: Any
) -> list[ResourceClaim]:
    """Return copies of the claims with one request, or one of its alternatives, changed."""
    replace = msgspec.structs.replace
    devices = claims[claim].spec.devices
    old = devices.requests[request]
    if old.first_available:
        parts = (replace(p, **changes) if k == alternative else p for k, p in enumerate(old.first_available))
        new = replace(old, first_available=tuple(parts))
    else:
        assert old.exactly is not None
        new = replace(old, exactly=replace(old.exactly, **changes))
    requests = tuple(new if j == request else r for j, r in enumerate(devices.requests))
    spec = replace(claims[claim].spec, devices=replace(devices, requests=requests))
    return [replace(c, spec=spec) if i == claim else c for i, c in enumerate(claims)]
