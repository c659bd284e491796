"""Does any allocation exist? Tries all of them, for problems of a handful of devices.

A choice is dropped as soon as a rule of `rules` is broken, because adding devices never repairs one. In
which order devices are tried cannot matter: the answer is only whether there is one.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from devlet.objects.documents import Document
from devlet.objects.values.quantity import ZERO, Quantity
from tests.support.allocation.rules import IMPROVED, MAX_RESULTS, Given, Matches, Rules, Want, World, requests_of
from tests.support.allocation.supply import Offer

__all__ = ["feasible"]

MODES: Final = ("ExactCount", "All")


def feasible(problem: Document, node: str, matches: Matches, rules: Rules = IMPROVED) -> bool | str:
    """Whether the claims fit together on the node; a text if they cannot even be tried, and why."""
    world = World(problem, node, matches, rules)
    for index, claim in enumerate(world.claims):
        if why := _unacceptable(world, index, claim):
            return f"claim {index}: {why}"
    wants = [
        [Want(index, name, ref, document) for ref, document in alternatives]
        for index, claim in enumerate(world.claims)
        for name, alternatives in requests_of(claim)
    ]
    return _fits(world, wants, [])


def _fits(world: World, wants: Sequence[Sequence[Want]], given: list[Given]) -> bool:
    if not wants:
        return True
    return any(
        _holds(world, extended) and _fits(world, wants[1:], extended)
        for want in wants[0]
        for chosen in _choices(world, want)
        for extended in [[*given, *(Given(want, offer) for offer in chosen)]]
    )


def _choices(world: World, want: Want) -> Iterator[Sequence[Offer]]:
    if want.document["allocationMode"] == "All":
        offers = world.all_offers(want)
        usable = all(_usable(world, want, offer) for offer in offers)
        yield from [offers] if offers and usable else []
    else:
        usable_offers = [offer for offer in world.offers.values() if _usable(world, want, offer)]
        yield from combinations(usable_offers, want.document.get("count", 1))


def _usable(world: World, want: Want, offer: Offer) -> bool:
    return not any(world.unusable(want, offer))


def _holds(world: World, given: Sequence[Given]) -> bool:
    return not world.conflicts(given) and not any(
        any(world.constraints(claim, mine)) or len(mine) > MAX_RESULTS
        for index, claim in enumerate(world.claims)
        for mine in [[one for one in given if one.want.claim == index]]
    )


# what stops the attempt before any device is tried


def _unacceptable(world: World, index: int, claim: Document) -> str:
    least = 0
    for request, (name, alternatives) in zip(
        claim["spec"]["devices"].get("requests") or [], requests_of(claim), strict=True
    ):
        if request.get("firstAvailable") and not world.on("PrioritizedList"):
            return f"{name}: alternatives while the feature is off"
        wants = [Want(index, name, ref, document) for ref, document in alternatives]
        if why := next((f"{want.ref}: {why}" for want in wants if (why := _malformed(world, want))), ""):
            return why
        least += min(_number(world, want) for want in wants)
    if least > MAX_RESULTS:
        return f"{least} devices, {MAX_RESULTS} are allowed"
    constraints = claim["spec"]["devices"].get("constraints") or []
    return "" if all(_is_constraint(constraint) for constraint in constraints) else "empty constraint"


def _is_constraint(constraint: Document) -> bool:
    return bool(constraint.get("matchAttribute") or constraint.get("distinctAttribute"))


def _malformed(world: World, want: Want) -> str:
    document = want.document
    if document.get("capacity") and not world.on("ConsumableCapacity"):
        return "capacity while the feature is off"
    if any("cel" not in selector for selector in document.get("selectors") or []):
        return "selector without CEL"
    if "adminAccess" in document and not world.on("AdminAccess"):
        return "admin access while the feature is off"
    if document["deviceClassName"] not in world.classes:
        return f"no class {document['deviceClassName']!r}"
    if document["allocationMode"] not in MODES:
        return f"unknown mode {document['allocationMode']}"
    if world.rules.strict_capacity and any(Quantity.parse(amount) < ZERO for amount in want.capacity.values()):
        return "negative capacity"
    return world.blocks_all(want) if document["allocationMode"] == "All" else ""


def _number(world: World, want: Want) -> int:
    if want.document["allocationMode"] == "All":
        return len(world.all_offers(want))
    return int(want.document.get("count", 1))
