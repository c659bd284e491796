from collections.abc import Callable
from typing import Any

import pytest

from devlet.cel.issues import CompileError
from devlet.cel.plan import Plan, PlanError

Planned = Callable[[str], Plan]


@pytest.mark.spec("DA-4.3f")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('int("x") == 1', "type conversion error from 'string' to 'int'"),
        ('device.driver.find("(") == ""', "error parsing regexp: missing closing ): `(`"),
        ("dyn(device)[[1]] == 1", "invalid qualifier type: *types.baseList"),
        ("dyn(device)[null] == 1", "invalid qualifier type: types.Null"),
        ("[int].all(x, x == int)", "reference to undefined type: x"),
    ],
)
def test_what_fails_while_planning_makes_the_expression_unusable(planned: Planned, text: str, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        planned(text)
    assert str(caught.value) == message
    assert isinstance(caught.value, CompileError)


def test_a_plan_error_still_has_a_place(planned: Planned) -> None:
    with pytest.raises(PlanError) as caught:
        planned('true && int("x") == 1')
    assert [issue.offset for issue in caught.value.issues] == [11]


def test_division_by_zero_waits_until_it_is_reached(planned: Planned) -> None:
    planned("1 / 0 == 1")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2, 3]", [1, 2, 3]),
        ("{'a': [1]}", {"a": [1]}),
        ("int('12')", 12),
        ("[int('1'), 2]", [1, 2]),
        ("1 in []", False),
    ],
)
def test_constants_are_computed_once(planned: Planned, text: str, value: Any) -> None:
    plan = planned(text)
    assert plan.constants[plan.checked.parsed.root.id] == value


@pytest.mark.parametrize("text", ["1 + 1", "[1, 1 + 1]", "size([1])", "!true"])
def test_operators_and_functions_are_not_computed_in_advance(planned: Planned, text: str) -> None:
    plan = planned(text)
    assert plan.checked.parsed.root.id not in plan.constants


def test_a_constant_list_is_a_set_for_in(planned: Planned) -> None:
    plan = planned("device.driver in ['a', 'b']")
    assert plan.sets[plan.checked.parsed.root.id].texts == {"a", "b"}
    assert not planned("device.driver in ['a', device.driver]").sets
    assert not planned("[1] in [[1]]").sets


def test_depth_counts_the_nodes_that_are_inside_of_each_other(planned: Planned) -> None:
    assert planned("true").depth == 1
    assert planned("1 + 1 + 1 == 3").depth == 4
