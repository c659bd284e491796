"""The smallest set of wishes that cannot be satisfied together on a node.

Wishes are the requests and constraints of the claims. Each wish is left out in turn. If the claims still do not fit,
the conflict does not need that wish, and it stays out. Every wish that remains is necessary. Other such sets may exist;
constraints are left out first, so that they are named only if they matter.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import msgspec

from devlet.alloc.requests import claim_name
from devlet.objects.types.claim import ResourceClaim

__all__ = ["Wish", "smallest", "wishes_of", "with_only"]


@dataclass(frozen=True, slots=True)
class Wish:
    """A request or a constraint, by its index in its claim. `text` is its name in messages."""

    claim: int
    is_constraint: bool
    index: int
    text: str


def wishes_of(claims: Sequence[ResourceClaim]) -> list[Wish]:
    """Return all wishes of the claims, constraints first."""
    constraints, requests = [], []
    for i, claim in enumerate(claims):
        prefix = f"claim {claim_name(claim)}, " if len(claims) > 1 else ""
        for j, constraint in enumerate(claim.spec.devices.constraints):
            kind = "matchAttribute" if constraint.match_attribute is not None else "distinctAttribute"
            name = constraint.match_attribute or constraint.distinct_attribute or ""
            constraints.append(Wish(i, True, j, f"{prefix}constraint #{j} ({kind} {name})"))
        for j, request in enumerate(claim.spec.devices.requests):
            requests.append(Wish(i, False, j, f"{prefix}request {request.name}"))
    return constraints + requests


def with_only(claims: Sequence[ResourceClaim], wishes: Collection[Wish]) -> list[ResourceClaim]:
    """Return copies of the claims with only these wishes."""
    kept = {(wish.claim, wish.is_constraint, wish.index) for wish in wishes}
    copies = []
    for i, claim in enumerate(claims):
        devices = claim.spec.devices
        less = msgspec.structs.replace(
            devices,
            requests=tuple(r for j, r in enumerate(devices.requests) if (i, False, j) in kept),
            constraints=tuple(c for j, c in enumerate(devices.constraints) if (i, True, j) in kept),
        )
        copies.append(msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, devices=less)))
    return copies


def smallest(
    claims: Sequence[ResourceClaim], fits: Callable[[Sequence[ResourceClaim]], bool | None]
) -> tuple[Wish, ...]:
    """Return the smallest conflict of claims that do not fit. A wish stays if it is unknown whether it could be left
    out."""
    kept = wishes_of(claims)
    for wish in list(kept):
        fewer = [each for each in kept if each is not wish]
        if fits(with_only(claims, fewer)) is False:
            kept = fewer
    return tuple(sorted(kept, key=lambda wish: (wish.claim, wish.is_constraint, wish.index)))
