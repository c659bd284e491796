from collections.abc import Callable
from typing import Any

import pytest

from devlet.cel.cost import Tracker
from devlet.cel.frames import Frame, Run
from devlet.cel.operators import ABSENT
from devlet.cel.values import CostExceeded

Answer = Callable[[str], tuple[Any, int]]


def test_an_unset_name_is_absent() -> None:
    frame = Frame(Run(Tracker(10), None), {"x": None})
    assert frame.find("x") is None
    assert frame.find("y") is ABSENT


def test_every_hundredth_step_asks_whether_to_give_up() -> None:
    answers = iter((False, False))
    run = Run(Tracker(10), lambda: next(answers))
    for _ in range(299):
        run.step(1)
    with pytest.raises(StopIteration):
        run.step(1)


def test_giving_up_names_the_comprehension() -> None:
    run = Run(Tracker(10), lambda: True)
    with pytest.raises(CostExceeded, match="operation interrupted") as caught:
        for _ in range(100):
            run.step(7)
    assert caught.value.node == 7


def test_a_bound_value_is_computed_when_it_is_read_in_the_scope_where_it_was_written(answer: Answer) -> None:
    assert answer("cel.bind(y, 1, [5].all(y, y == 5))")[0] is True
    assert answer("cel.bind(y, 1, cel.bind(z, y + 1, [5].all(y, z == 2 && y == 5)))")[0] is True


def test_an_unused_bound_value_costs_nothing_and_cannot_fail(answer: Answer) -> None:
    assert answer("cel.bind(a, 1 / 0, true)") == (True, 0)
    assert answer("cel.bind(a, 1 / 0, a == 1)") == ("division by zero", 3)


def test_a_bound_value_is_computed_once(answer: Answer) -> None:
    once = answer("cel.bind(a, device.driver.lowerAscii(), a == a)")
    thrice = answer("cel.bind(a, device.driver.lowerAscii(), a == a && a == a && a == a)")
    assert thrice[1] - once[1] == 2 * (2 + 2)
