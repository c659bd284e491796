from typing import Any

import pytest

A = 'device.attributes["gpu.example.com"]'

EXPRESSIONS = [
    f"{A}.?model.orValue('none') == 'a100'",
    f"{A}.?nope.orValue({A}.model)",
    f"{A}.?nope.or({A}.?model)",
    f"{A}.?nope.or({A}.?nada).or(optional.of(1)).value()",
    f"{A}.?model.hasValue()",
    f"{A}.?nope.value()",
    f"optional.of({A}.index).value() + 1",
    f"optional.of({A}.nope).orValue(1)",
    f"{A}.?index.optMap(x, x + 1)",
    f"{A}.?tags.optFlatMap(x, x[?0])",
    f"(device.driver == 'x' ? {A}.?model : optional.of('y')).hasValue()",
    "optional.none() == optional.none()",
    f"{A}.?model == optional.of('a100')",
    "dyn([]).or(optional.of(1))",
    "dyn(optional.of(1)).orValue(2)",
    'device.capacity["gpu.example.com"].?memory.orValue(quantity("1")).isLessThan(quantity("50Gi"))',
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_optionals_mean_the_same_generated_and_evaluated(bench: Any, text: str) -> None:
    bench.check(text)


def test_an_optional_is_not_boxed_unnecessarily(bench: Any) -> None:
    source = bench.source(f"{A}.?model.orValue('none') == 'a100'")
    assert ".get(" in source and ".value" not in source
