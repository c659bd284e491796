from collections.abc import Callable
from typing import Any

import pytest

from devlet.cel.dispatch import cost, fits, implementation
from devlet.cel.functions import Function, Overload
from devlet.cel.types import DYN, INT, STRING, A, list_of, map_of
from devlet.cel.values import CelError

OF_TEXT = Overload("size_of_text", (STRING,), INT, len, cost=lambda args, result: 5)
OF_NUMBER = Overload("size_of_number", (INT,), INT, lambda number: -number, cost=lambda args, result: 7)
SIZE = Function("measure", (OF_TEXT, OF_NUMBER))


@pytest.mark.parametrize(
    ("param", "value", "is_fitting"),
    [
        (DYN, 1, True),
        (A, "x", True),
        (STRING, "x", True),
        (STRING, 1, False),
        (INT, True, False),
        (list_of(STRING), ["a"], True),
        (list_of(STRING), [1], False),
        (list_of(STRING), [], True),
        (list_of(STRING), ["a", 1], True),
        (map_of(STRING, INT), {"a": 1}, True),
        (map_of(STRING, INT), {"a": "b"}, False),
        (map_of(STRING, INT), {}, True),
    ],
)
def test_of_lists_and_maps_the_first_element_decides(param: Any, value: Any, is_fitting: bool) -> None:
    assert fits(param, value) is is_fitting


def test_the_overload_that_fits_the_values_is_called() -> None:
    call = implementation(SIZE, None)
    assert (call("abc"), call(4)) == (3, -4)


@pytest.mark.parametrize("chosen", [None, OF_TEXT])
def test_arguments_that_fit_nothing_are_named_by_their_types(chosen: Overload | None) -> None:
    with pytest.raises(CelError, match=r"^no such overload: measure\(double\)$"):
        implementation(SIZE, chosen)(1.5)


def test_an_operator_decides_by_itself() -> None:
    function = Function("_-_", (OF_NUMBER,), dispatch=lambda a, b: "dispatched")
    assert implementation(function, OF_NUMBER)(1, 2) == "dispatched"


def test_without_a_certain_overload_there_is_no_cost_but_the_default() -> None:
    chosen = cost(SIZE, OF_NUMBER)
    assert chosen is not None
    assert chosen([1], 1) == 7
    assert cost(SIZE, None) is None


def test_costs_of_kubernetes_are_by_function_whichever_overload_it_is() -> None:
    of_replace = cost(Function("replace", SIZE.overloads), None)
    assert of_replace is not None
    assert (of_replace(["a"], 1), of_replace([1], 1), of_replace([1.5], 1)) == (5, 7, 5)


def test_the_reference_charges_a_dyn_address_like_one_that_was_read_already(
    answer: Callable[[str], tuple[Any, int]],
) -> None:
    assert answer("cidr('10.0.0.0/8').containsIP('10.100.200.253')") == (True, 4)
    assert answer("cidr('10.0.0.0/8').containsIP(dyn('10.100.200.253'))") == (True, 2)
