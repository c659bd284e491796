from collections.abc import Callable
from typing import Any

import pytest

from devlet.cel.evaluate import Evaluation

Answer = Callable[[str], tuple[Any, int]]


@pytest.mark.spec("DA-4.3b")
@pytest.mark.parametrize(
    ("text", "value", "cost"),
    [
        ("[1, 2, 3].all(x, x > 0)", True, 16),
        ("[3, 2, 1].all(x, x > 2)", False, 13),
        ("[1, 2, 3].exists(x, x > 2)", True, 19),
        ("[1, 2, 3].exists_one(x, x > 2)", True, 10),
        ("[1, 2, 3].map(x, x * 2)", [2, 4, 6], 43),
        ("[1, 2, 3].filter(x, x > 1)", [2, 3], 33),
        ("[1, 2, 3].map(x, x > 1, x * 2)", [4, 6], 35),
        ("[[1, 2], [3]].map(x, x.map(y, y + 1))", [[2, 3], [4]], 71),
        ("{'a': 1}.map(k, k)", ["a"], 14),
        ("[1, 2, 3].all(i, v, v == i + 1)", True, 22),
        ("[5, 6].transformList(i, v, i * v)", [0, 6], 31),
        ("[5, 6].transformMap(i, v, i > 0, v)", {1: 6}, 9),
        ("{'a': 1}.transformMap(k, v, v + 1)", {"a": 2}, 6),
        ("[1, 1].transformMapEntry(i, v, {v: i})", "insert failed: key 1 already exists", 69),
    ],
)
def test_macros_compute_and_cost_what_they_do_in_the_reference(
    answer: Answer, text: str, value: Any, cost: int
) -> None:
    assert answer(text) == (value, cost)


@pytest.mark.spec("DA-4.3c")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[0, 2].all(x, 1 / x == 1)", False),
        ("[1, 0].all(x, 1 / x == 1)", "division by zero"),
        ("[0, 1].exists(x, 1 / x == 1)", True),
        ("[0, 2].exists(x, 1 / x == 1)", "division by zero"),
        ("[0, 1].exists_one(x, 1 / x == 1)", "division by zero"),
        ("[0, 1].map(x, 1 / x)", "division by zero"),
    ],
)
def test_all_and_exists_forgive_errors_of_elements_that_do_not_decide(answer: Answer, text: str, value: Any) -> None:
    assert answer(text)[0] == value


def test_only_lists_and_maps_can_be_iterated(answer: Answer) -> None:
    assert answer("D.count.all(x, true)")[0] == "got 'types.Int', expected iterable type"
    assert answer("D.name.all(x, true)")[0] == "got 'types.String', expected iterable type"
    assert answer("D.version.all(i, x, true)")[0] == "unsupported comprehension range type: cel.Semver"


def test_a_variable_hides_the_one_outside_and_is_gone_afterwards(answer: Answer) -> None:
    assert answer("[1].all(x, [2].all(x, x == 2) && x == 1)")[0] is True


def test_a_list_that_is_built_is_as_good_as_any_other(run: Callable[..., Evaluation]) -> None:
    value = run("[1, 2].map(x, x)").value
    assert type(value) is list
    assert run("cel.bind(x, [], x + [1] == x)").value is False


def test_building_a_long_list_takes_time_in_proportion_to_its_length(run: Callable[..., Evaluation]) -> None:
    evaluation = run("lists.range(20000).map(x, x + 1).size()")
    assert evaluation.value == 20000
