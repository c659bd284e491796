"""Every difference to the reference is explained by a rule of improvements.toml, and every rule explains one."""

import json
import tomllib
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from devlet.alloc import Rules, solve_problem
from devlet.objects.documents import Document
from tests.support.allocation.check import IMPROVED, REFERENCE, check
from tests.support.allocation.selectors import selector_matches
from tests.support.allocation.shorthand import problem
from tests.support.problems.generator import mixed_problem

HERE = Path(__file__).parent
VECTORS = HERE.parents[1] / "vectors"
LISTED: list[Document] = tomllib.loads((HERE / "improvements.toml").read_text())["improvement"]
NAMES = [entry["rule"] for entry in LISTED]
SEEDS = range(1_000_000, 1_000_080)

# Answers to problems are repeatable, so all share IDs in them are the same.
NUMBERED = replace(IMPROVED, unique_shares=False)

COUNTERS = {"pool": "p1", "counters": {"s": {"n": 4}, "t": {"n": 4}}}

# One for each rule, as small as it can be.
SMALLEST: dict[str, Document] = {
    "best_fit": {"slices": [COUNTERS, {"pool": "p1", "devices": ["d1 s.n-=4", "d2 s.n-=1"]}], "claims": [["r0 a"]]},
    "errors_do_not_match": {"slices": [{"pool": "p1", "devices": ["d1", "d2 x=1"]}], "claims": [["r0 a x=1"]]},
    "only_matching_pools": {
        "slices": [{"pool": "p1", "devices": ["d1"]}, {"pool": "b/p2", "of": 2, "devices": ["d1"]}],
        "claims": [["r0 all a"]],
    },
    "own_counter_sets": {
        "slices": [COUNTERS, {"pool": "p1", "devices": ["d1 s.n-=3", "d2 s.n-=3", "d3 t.n-=1"]}],
        "allocated": ["p1/d1", "p1/d2"],
        "claims": [["r0 a"]],
    },
    "admin_is_exempt": {"slices": [{"pool": "p1", "devices": ["d1"]}], "claims": [["r0 a admin"], ["r0 a"]]},
    "exact_constraints": {
        "slices": [{"pool": "p1", "devices": ["d1 x=1", "d2 x=2", "d3 x=1"]}],
        "claims": [{"requests": ["r0 3 a"], "constraints": ["distinct x"]}],
    },
    "strict_capacity": {
        "slices": [{"pool": "p1", "devices": ["d1 lanes:1"]}],
        "claims": [["r0 a a.example.com/lanes:1"]],
    },
    "single_config": {
        "slices": [{"pool": "p1", "devices": ["d1", "d2"]}],
        "claims": [{"requests": ["r0 a", "r1 a"], "config": ["k=v for r0,r1"]}],
    },
    "whole_pool_generation": {
        "slices": [
            {"pool": "p1", "devices": ["d1"]},
            {"pool": "p1", "at": "node-2", "generation": 2, "devices": ["d1"]},
        ],
        "claims": [["r0 a"]],
    },
    "all_may_fail": {
        "slices": [{"pool": "p1", "devices": ["d1 x=1 kind=x", "d2 x=2 kind=y", "d3 x=1 kind=z"]}],
        "claims": [
            {
                "requests": ["r0 a if !('z' in [device.attributes['a.example.com'].kind])", "r1 all a kind=z"],
                "constraints": ["distinct x"],
            }
        ],
    },
    "shares_without_amounts": {
        "slices": [COUNTERS, {"pool": "p1", "devices": ["d1 s.n-=4 shared", "d2 s.n-=1"]}],
        "allocated": ["p1/d1 shared"],
        "claims": [["r0 a"]],
    },
}


@cache  # the documents live as long as the tests: they are known by their identity
def problems() -> list[Document]:
    lines = [
        line
        for name in ("allocator_problems.jsonl", "allocator_problems_lists.jsonl")
        for line in (VECTORS / name).read_text().splitlines()
    ]
    return [json.loads(line) for line in lines] + [mixed_problem(seed) for seed in SEEDS]


@cache
def smallest(rule: str) -> Document:
    return problem({"case": rule, **SMALLEST[rule]})


def without(*rules: str) -> Rules:
    return replace(Rules(), **dict.fromkeys(rules, False))


_SOLVED: dict[tuple[int, Rules], list[Document]] = {}


def solved(document: Document, rules: Rules) -> list[Document]:
    """Remembered for the problems that all tests ask about."""
    key = (id(document), rules)
    if key not in _SOLVED:
        _SOLVED[key] = solve_problem(document, rules=rules)
    return _SOLVED[key]


def answers(document: Document, rules: Rules, *, exactly: bool = False) -> list[Any]:
    """Outcomes per node; exactly means with devices, configuration and all."""
    found = solved(document, rules)
    if exactly:
        return [(each["outcome"], each.get("results")) for each in found]
    return [each["outcome"] for each in found]


def explanation(document: Document, *, exactly: bool = False) -> tuple[str, ...]:
    """The fewest rules without which the answer is the reference's; none if it is so anyway."""
    wanted = answers(document, Rules.reference(), exactly=exactly)
    for number in range(len(NAMES) + 1):
        for rules in combinations(NAMES, number):
            if answers(document, without(*rules), exactly=exactly) == wanted:
                return rules
    raise AssertionError(f"{document['name']}: no rule explains the difference")


@cache
def differing() -> list[Document]:
    return [each for each in problems() if answers(each, Rules()) != answers(each, Rules.reference())]


@pytest.mark.long
def test_every_difference_is_explained_by_few_rules() -> None:
    explanations = [explanation(each) for each in differing()]
    assert len(explanations) > 50
    assert max(map(len, explanations)) <= 3


@pytest.mark.parametrize("rule", NAMES)
def test_a_rule_alone_explains_its_smallest_difference(rule: str) -> None:
    assert explanation(smallest(rule), exactly=True) == (rule,)


def test_every_rule_is_listed_and_every_listed_rule_exists() -> None:
    assert sorted(NAMES) == sorted(field.name for field in fields(Rules))
    assert list(SMALLEST) == NAMES
    assert all(entry["when"] and entry["number"] for entry in LISTED)


def fits(document: Document, rules: Rules) -> Iterator[Document]:
    return (each for each in solved(document, rules) if each["outcome"] == "fit")


@pytest.mark.long
def test_every_allocation_keeps_all_rules() -> None:
    for document in [*problems(), *map(smallest, NAMES)]:
        for answer in fits(document, Rules()):
            matches = selector_matches(document)
            assert check(document, answer["node"], answer["results"], matches, NUMBERED) == [], document["name"]
    assert check(document, answer["node"], [], matches, NUMBERED) != []


@pytest.mark.long
def test_every_allocation_of_the_reference_keeps_what_the_reference_keeps() -> None:
    for document in problems():
        for answer in fits(document, Rules.reference()):
            matches = selector_matches(document)
            assert check(document, answer["node"], answer["results"], matches, REFERENCE) == [], document["name"]
