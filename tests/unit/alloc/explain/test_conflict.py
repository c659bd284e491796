"""The smallest set of wishes that cannot hold together."""

from collections.abc import Callable, Sequence

from devlet.alloc.explain.conflict import smallest, wishes_of, with_only
from devlet.alloc.problems import Problem
from devlet.objects.types.claim import ResourceClaim

Read = Callable[..., Problem]
CLAIM = {"requests": ["r0 a", "r1 a", "r2 a"], "constraints": ["match a.example.com/x", "distinct a.example.com/y"]}


def names(claims: Sequence[ResourceClaim]) -> list[str]:
    return [request.name for claim in claims for request in claim.spec.devices.requests]


def test_wishes_are_requests_and_constraints(read: Read) -> None:
    texts = [wish.text for wish in wishes_of(read(claims=[CLAIM]).claims)]
    assert texts == [
        "constraint #0 (matchAttribute a.example.com/x)",
        "constraint #1 (distinctAttribute a.example.com/y)",
        "request r0",
        "request r1",
        "request r2",
    ]


def test_wishes_of_several_claims_are_distinguished(read: Read) -> None:
    texts = [wish.text for wish in wishes_of(read(claims=[["r0 a"], ["r0 a"]]).claims)]
    assert texts == ["claim default/claim-0, request r0", "claim default/claim-1, request r0"]


def test_unnecessary_wishes_are_left_out(read: Read) -> None:
    claims = read(claims=[CLAIM]).claims
    found = smallest(claims, lambda fewer: not {"r0", "r2"} <= set(names(fewer)))
    assert [wish.text for wish in found] == ["request r0", "request r2"]


def test_wishes_with_an_unknown_result_stay(read: Read) -> None:
    claims = read(claims=[CLAIM]).claims
    assert len(smallest(claims, lambda _: None)) == 5


def test_the_claims_stay_as_they_are(read: Read) -> None:
    claims = read(claims=[CLAIM]).claims
    wishes = wishes_of(claims)
    (less,) = with_only(claims, wishes[1:3])
    assert names([less]) == ["r0"]
    assert [c.distinct_attribute for c in less.spec.devices.constraints] == ["a.example.com/y"]
    assert names(claims) == ["r0", "r1", "r2"]
