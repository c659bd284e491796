from collections.abc import Callable
from typing import Any

import pytest

Answer = Callable[[str], tuple[Any, int]]


@pytest.mark.spec("DA-4.1a")
@pytest.mark.parametrize(
    ("text", "value", "cost"),
    [
        ("D.nope", "no such key: nope", 4),
        ("D.count", 8, 4),
        ('device.attributes["nope"].size()', 0, 4),
        ('device.attributes["nope"].x', "no such key: x", 4),
        ('device.attributes[?"nope"].hasValue()', True, 4),
        ('"nope" in device.attributes', False, 3),
        ("device.attributes.size()", 2, 3),
        ("D.names[10]", "index out of bounds: 10", 5),
        ("D.names[1.0]", "bird", 5),
        ("D.names[1.5]", "unsupported index value 1.5 in list", 5),
        ('D.names["x"]', "unsupported index type 'string' in list", 5),
        ("D.name.foo", "no such key: foo", 5),
        ("dyn(1).foo", "no such key: foo", 2),
        ("dyn({1: 2})[1.0]", 2, 2),
    ],
)
def test_a_lookup_costs_a_unit_for_each_step_and_one_for_the_variable(
    answer: Answer, text: str, value: Any, cost: int
) -> None:
    assert answer(text) == (value, cost)


@pytest.mark.spec("DA-4.1b")
@pytest.mark.parametrize(
    ("text", "value", "cost"),
    [
        ("has(D.name)", True, 3),
        ("has(D.nope)", False, 3),
        ("has(device.attributes.nope)", True, 2),
        ("has(D.name.foo)", False, 4),
        ("has(D.names.foo)", "unsupported index type 'string' in list", 4),
        ("has(dyn(1).foo)", False, 1),
        ("has(device.driver)", True, 1),
        ("has((device.driver == 'x' ? {'a': 1} : {'b': 1}).a)", False, 3),
    ],
)
def test_has_itself_is_free_and_what_it_looks_through_is_not(answer: Answer, text: str, value: Any, cost: int) -> None:
    assert answer(text) == (value, cost)


@pytest.mark.spec("DA-4.3a")
@pytest.mark.parametrize(
    ("text", "value", "cost"),
    [
        ("D.?nope.foo.bar.hasValue()", False, 4),
        ("D.?name.value()", "gpu-a100", 5),
        ("D.names[?10].hasValue()", False, 5),
        ("D.?names[0].value()", "fish", 6),
        ("optional.of({'a': {'b': 1}}).a.b.value()", 1, 5),
        ("optional.of({'a': {'b': 1}}).a.c.hasValue()", False, 4),
        ("has(D.?name.foo)", False, 3),
        ("device.?driver.value()", "dra.example.com", 3),
        ("{'a': optional.of({'b': 1})}.a.b.value()", 1, 35),
    ],
)
def test_one_optional_step_makes_the_rest_optional(answer: Answer, text: str, value: Any, cost: int) -> None:
    result, charged = answer(text)
    assert result == value
    assert charged == cost


def test_behind_a_condition_fields_are_looked_up_in_the_chosen_branch(answer: Answer) -> None:
    chosen = "(device.driver == 'x' ? device.attributes['a'] : device.attributes['other.example.com']).model"
    assert answer(chosen) == ("abc", 6)
    assert answer("(D.count ? {'a': 1} : {'a': 2}).a") == ("no such overload", 4)


def test_an_index_may_be_an_attribute_a_call_or_a_condition(answer: Answer) -> None:
    assert answer("device.attributes[device.driver].count") == (8, 5)
    assert answer("device.attributes[device.driver + 'x'].size()") == (0, 8)
    assert answer("device.attributes[true ? device.driver : 'a'].size()") == (6, 5)
    assert answer("device.attributes[D.nope].x")[0] == "no such key: nope"


def test_an_invalid_key_is_named_as_in_the_reference(answer: Answer) -> None:
    assert answer("dyn(device)[D.version]")[0] == "invalid qualifier type: cel.Semver"
    assert answer("dyn(device)[D.names]")[0] == "invalid qualifier type: *types.baseList"


def test_an_object_of_the_host_is_found_behind_dyn_too(answer: Answer) -> None:
    assert answer("dyn(device).driver")[0] == "dra.example.com"
    assert answer("dyn(device)['driver']")[0] == "dra.example.com"
    assert answer("dyn(device).?nope.hasValue()")[0] is False
