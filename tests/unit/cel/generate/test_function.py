import gc
from typing import Any

import pytest

from devlet.cel.checker import check
from devlet.cel.environment import kubernetes
from devlet.cel.evaluate import evaluate
from devlet.cel.generate import generate, generate_filter
from devlet.cel.parser import parse
from devlet.cel.plan import plan
from devlet.cel.types import INT
from devlet.cel.values import CelError

A = 'device.attributes["gpu.example.com"]'


def test_a_function_takes_the_variables_that_are_used_in_the_order_of_the_environment() -> None:
    environment = kubernetes((1, 36), stored=True).extended(variables={"c": INT, "b": INT, "a": INT})
    checked = check(parse("a * 10 + c == 12", environment.macros), environment)
    function = generate(checked, plan(checked))
    assert function.variables == ("c", "a")
    assert function(2, 1) is True and function(1, 2) is False


def test_a_filter_needs_the_only_variable() -> None:
    environment = kubernetes((1, 36), stored=True).extended(variables={"a": INT, "b": INT})
    checked = check(parse("a == b", environment.macros), environment)
    with pytest.raises(ValueError, match="one variable, not 2"):
        generate_filter(checked, plan(checked))


def test_a_filter_of_nothing_is_empty(bench: Any) -> None:
    assert bench.filter("true")([]) == [] and bench.filter("true")(bench.devices[:2]) == [True, True]


def test_errors_are_values_in_a_filter_and_raised_by_a_function(bench: Any) -> None:
    checked, planned = bench.compiled(f"{A}.nope")
    assert isinstance(generate_filter(checked, planned)(bench.devices)[0], CelError)
    with pytest.raises(CelError, match="no such key: nope"):
        generate(checked, planned)(bench.devices[0])


def test_an_object_that_is_not_as_declared_is_evaluated(bench: Any) -> None:
    checked, planned = bench.compiled("device.driver == 'x'")
    expected = evaluate(planned, {"device": {"driver": "x"}})
    assert generate(checked, planned)({"driver": "x"}) == expected.value


def test_kept_errors_leave_no_garbage(bench: Any) -> None:
    checked, planned = bench.compiled(f"{A}.nope == 1 && {A}.nada == 2")
    function = generate_filter(checked, planned)
    function(bench.devices * 10)
    gc.collect()
    gc.disable()
    try:
        function(bench.devices * 10)
        assert gc.collect() < 20
    finally:
        gc.enable()
