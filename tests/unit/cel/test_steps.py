from collections.abc import Callable
from typing import Any

import pytest

from devlet.cel.evaluate import Evaluation

Answer = Callable[[str], tuple[Any, int]]
FAILS = "1 / 0 == 1"


@pytest.mark.spec("DA-4.3d")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"{FAILS} || true", True),
        (f"true || {FAILS}", True),
        (f"{FAILS} && false", False),
        (f"false && {FAILS}", False),
        (f"{FAILS} && true", "division by zero"),
        (f"false || {FAILS}", "division by zero"),
        (f"({FAILS} || false) && false", False),
        ("D.count && true", "no such overload"),
        ("D.count || true", True),
        ("D.nope || D.count", "no such key: nope"),
    ],
)
def test_and_and_or_absorb_errors_from_either_side(answer: Answer, text: str, value: Any) -> None:
    assert answer(text)[0] == value


@pytest.mark.spec("DA-4.4a")
@pytest.mark.parametrize(
    ("text", "value", "cost"),
    [
        ("true", True, 0),
        ("device.driver == 'dra.example.com'", True, 4),
        ("D.name == 'gpu-a100' && D.count > 4", True, 10),
        ("D.name == 'x' && D.count > 4", False, 5),
        ("1 + 2 * 3", 7, 2),
        ("[1, 2]", [1, 2], 0),
        ("[1, 1 + 1]", [1, 2], 11),
        ("{'a': 1 + 1}", {"a": 2}, 31),
        ("true ? device.driver : 'x'", "dra.example.com", 1),
        ("device.driver.matches('^dra')", True, 4),
        ("device.driver.contains('example')", True, 4),
        ("D.nope == 'a'", "no such key: nope", 5),
        ("D.nope + 1 == 2", "no such key: nope", 6),
        ("D.nope.matches('a')", "no such key: nope", 4),
        ("D.nope.substring(1, 2)", "no such key: nope", 4),
        ("[D.nope, D.name]", "no such key: nope", 14),
        ("{'a': D.nope}", "no such key: nope", 34),
    ],
)
def test_cost_is_counted_part_by_part(answer: Answer, text: str, value: Any, cost: int) -> None:
    assert answer(text) == (value, cost)


def test_alternatives_of_an_optional_are_free_and_computed_only_if_needed(answer: Answer) -> None:
    assert answer("optional.of(1).orValue(1 / 0)") == (1, 1)
    assert answer("optional.none().orValue(1 / 0)") == ("division by zero", 2)
    assert answer("optional.none().or(optional.of(2)).value()") == (2, 3)
    assert answer("D.name.orValue(1)") == ("gpu-a100", 4)


def test_a_value_that_the_reference_cannot_hash_fails_in_a_set_whatever_is_around(answer: Answer) -> None:
    text = "internal error: runtime error: hash of unhashable type cel.Semver"
    assert answer("D.version in ['a'] || true") == (text, 4)


@pytest.mark.spec("DA-4.4b")
@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("device.driver == 'x' || 1 / 0 == 1", "1 / 0"),
        ("device.driver == 'x' || D.nope == 1", 'device.attributes["dra.example.com"].nope'),
        ("[1].all(x, D.names[x + 7] == '')", 'device.attributes["dra.example.com"].names[x + 7]'),
        ("D.count && true", 'device.attributes["dra.example.com"].count && true'),
        ("D.version in ['a']", "device.attributes[\"dra.example.com\"].version in ['a']"),
        ("cel.bind(a, D.nope, a == 1)", 'device.attributes["dra.example.com"].nope'),
    ],
)
def test_an_error_knows_the_part_that_failed(
    run: Callable[..., Evaluation], planned: Callable[[str], Any], text: str, part: str
) -> None:
    error = run(text).error
    assert error is not None
    assert planned(text).checked.parsed.source.snippet(error.node) == part
