from typing import Any

import pytest

from devlet.objects.documents import Document
from tests.support.allocation.brute_force import feasible
from tests.support.allocation.rules import IMPROVED, REFERENCE
from tests.support.allocation.shorthand import problem


def drivers(expression: str, _device: Document, driver: str) -> bool:
    return expression.endswith(f'"{driver}"')


def fits(claims: list[Any], *devices: str, rules: Any = IMPROVED, **parts: Any) -> bool | str:
    short = {"case": "test", "slices": [{"pool": "p1", "devices": list(devices)}], "claims": claims, **parts}
    return feasible(problem(short), "node-1", drivers, rules)


@pytest.mark.parametrize(
    ("claims", "devices", "answer"),
    [
        ([], [], True),
        ([["r0 a"]], ["d1"], True),
        ([["r0 2 a"]], ["d1"], False),
        ([["r0 a"], ["r0 a"]], ["d1"], False),
        ([["r0 a"], ["r0 a admin"]], ["d1"], True),
        ([["r0 all a"]], [], False),
        ([["r0 a", "r1 all a"]], ["d1", "d2"], False),
        ([[{"r0": ["s0 2 a", "s1 a"]}]], ["d1"], True),
        ([["r0 a lanes:3", "r1 a lanes:3"]], ["d1 lanes:4 shared"], False),
        ([["r0 a lanes:3", "r1 a lanes:1"]], ["d1 lanes:4 shared"], True),
        ([["r0 a"]], ["d1 !NoSchedule"], False),
        ([{"requests": ["r0 3 a"], "constraints": ["match x"]}], ["d1 x=[a,b]", "d2 x=a", "d3 x=b", "d4 x=b"], True),
        ([{"requests": ["r0 3 a"], "constraints": ["distinct x"]}], ["d1 x=a", "d2 x=b", "d3 x=a"], False),
    ],
)
def test_it_knows_whether_there_is_an_allocation(claims: list[Any], devices: list[str], answer: bool) -> None:
    assert fits(claims, *devices) is answer


def test_it_gives_up_what_a_first_choice_would_block() -> None:
    counters = [
        {"pool": "p1", "devices": ["d1 s.n-=3", "d2 s.n-=1", "d3 s.n-=2"]},
        {"pool": "p1", "counters": {"s": {"n": 3}}},
    ]
    assert fits([["r0 2 a"]], slices=counters) is True
    assert fits([["r0 3 a"]], slices=counters) is False


@pytest.mark.parametrize(
    ("claim", "parts", "why"),
    [
        (["r0 nowhere"], {}, "no class 'nowhere'"),
        (["r0 mode:Half a"], {}, "unknown mode Half"),
        (["r0 33 a"], {}, "33 devices, 32 are allowed"),
        (["r0 a if nothing"], {}, "selector without CEL"),
        (["r0 a lanes:-1"], {}, "negative capacity"),
        (["r0 a admin"], {"without": ["AdminAccess"]}, "admin access while the feature is off"),
        (["r0 a lanes:1"], {"without": ["ConsumableCapacity"]}, "capacity while the feature is off"),
        ([{"r0": ["s0 a"]}], {"without": ["PrioritizedList"]}, "alternatives while the feature is off"),
        ({"requests": ["r0 a"], "constraints": ["nothing"]}, {}, "empty constraint"),
    ],
)
def test_it_says_what_cannot_be_tried(claim: Any, parts: Document, why: str) -> None:
    assert why in str(fits([claim], "d1", **parts))


def test_rules_of_the_reference_can_be_asked_for() -> None:
    assert fits([["r0 a admin"], ["r0 a"]], "d1") is True
    assert fits([["r0 a admin"], ["r0 a"]], "d1", rules=REFERENCE) is False
