"""The costs are the reference's own, recorded from it with the sizes below."""

import pytest

from devlet.cel.checker import check
from devlet.cel.environment import BINDINGS, Environment, ObjectField, kubernetes
from devlet.cel.estimate import estimate
from devlet.cel.functions import UNBOUNDED, Range
from devlet.cel.parser import parse
from devlet.cel.types import ANY, STRING, map_of, object_type

SIZES = {
    ("thing",): 0,
    ("thing", "name"): 63,
    ("thing", "tags"): 32,
    ("thing", "tags", "@keys"): 63,
    ("thing", "tags", "@values"): 32,
    ("thing", "tags", "@values", "@keys"): 32,
    ("thing", "tags", "@values", "@values"): 64,
}


def sizes(path: tuple[str, ...]) -> Range | None:
    if path[:3] == ("thing", "tags", "@values") and len(path) == 4 and path[3] != "@keys":
        return Range(0, 64)
    return Range(0, SIZES[path]) if path in SIZES else None


@pytest.fixture(scope="module")
def environment() -> Environment:
    fields = {
        "name": ObjectField(STRING, "name"),
        "tags": ObjectField(map_of(STRING, map_of(STRING, ANY)), "tags"),
    }
    return kubernetes((1, 36), stored=True).extended(
        variables={"thing": object_type("test.Thing")},
        objects={"test.Thing": fields},
        libraries=[BINDINGS],
        sizes=sizes,
    )


def cost(text: str, environment: Environment) -> Range:
    return estimate(check(parse(text, environment.macros), environment))


@pytest.mark.spec("DA-4.4q")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", 0),
        ('thing.name == "dra.example.com"', 4),
        ('"abc" + "de" == "abcde"', 2),
        ("[1, 2, 3].size() == 3", 12),
        ('{"a": 1}.size() == 1', 32),
        ('{"a": 1}["a"] == 1', 32),
        ('has(thing.tags["d"].x)', 3),
        ('thing.tags["d"].x == "abc"', 5),
        ('thing.tags["d"].x == thing.tags["d"].y', 15),
        ('thing.tags["d"].x.startsWith("abcdefghijk")', 6),
        ('thing.tags["d"].x.matches("[a-z]+[0-9]")', 25),
        ('thing.tags["d"].x.contains("abcdefghijk")', 18),
        ('thing.tags["d"].b && thing.tags["d"].c', 8),
        ('thing.tags["d"].b ? thing.tags["d"].c : true', 8),
        ('thing.tags.all(k, k != "x")', 163),
        ('thing.tags.exists(k, thing.tags[k].exists(n, n == "x"))', 6435),
        ("[1, 2, 3].map(x, x * 2) == [2, 4, 6]", 74),
        ("[1, 2, 3].filter(x, x > 1).size() == 2", 68),
        ("[1, 2].exists_one(x, x == 1)", 20),
        ("[[1, 2], [3]].all(l, l.exists(x, x > 0))", 65),
        ('["ab", "c"].map(s, s + s).all(s, s == "abab")', 62),
        ('{"k": "v"}.transformMap(k, v, v + k).all(k, v, v == "vk")', 73),
        ('cel.bind(a, thing.tags["d"], a.x == "1" && a.y == "2")', 19),
        ('dyn("abc") == dyn("abc")', 3),
        ("1 in [1, 2, 3]", 13),
        ('"k" in {"k": 1}', 31),
        ('string(b"abcd") == "abcd"', 2),
        ('(true ? ["a"] : ["bb", "cc"])[0] == "a"', 12),
        (
            '(["a"] + ["bbbbbbbbbbbbbbbbbbbbbbbb"]).all(x, x == "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")',
            36,
        ),
    ],
)
def test_the_most_an_expression_can_cost(text: str, expected: int, environment: Environment) -> None:
    assert cost(text, environment).max == expected


@pytest.mark.spec("DA-4.4r")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('type(thing.tags["d"].x) == int', 1844674407370955270),
        ('optional.of("abc").optMap(v, v + "d").orValue("") == "abcd"', 1844674407370955282),
        ('thing.tags["d"].x.split(",").isSorted()', UNBOUNDED),
    ],
)
def test_without_a_size_the_cost_is_beyond_every_limit(text: str, expected: int, environment: Environment) -> None:
    assert cost(text, environment).max == expected


def test_the_later_of_two_paths_that_share_memory_counts_for_both(environment: Environment) -> None:
    # The key n of the inner map has the size of its value w: 64, not 32.
    assert cost('thing.tags.all(k, v, v.exists(n, w, n == thing.tags["d"].x))', environment).max == 16547


def test_the_least_cost_is_that_of_the_shortest_way(environment: Environment) -> None:
    assert cost('true || thing.name == "x"', environment) == Range(0, 3)
    assert cost('thing.name == "x" || true', environment).min == 3
    assert cost("true ? 1 : [1, 2].size()", environment) == Range(0, 11)
    assert cost('thing.tags.all(k, k != "x")', environment).min == 3


def test_a_variable_hides_the_size_of_the_host(environment: Environment) -> None:
    assert cost('cel.bind(thing, "ab", thing == "ab")', environment).max == 12


def test_a_macro_of_a_macro_is_the_product(environment: Environment) -> None:
    one = cost("[1, 2, 3, 4, 5].all(x, x > 0)", environment).max
    two = cost("[1, 2, 3, 4, 5].all(y, [1, 2, 3, 4, 5].all(x, x > 0))", environment).max
    assert two > 5 * one
