from collections.abc import Callable

import pytest

from devlet.cel import operators as op
from devlet.cel.values import CostExceeded, Optional


def test_lists_that_double_again_and_again_end_in_the_cost_limit() -> None:
    values: list[object] = [1, 2]
    with pytest.raises(CostExceeded, match="actual cost limit exceeded"):
        for _ in range(40):
            values = op.add(values, values)


@pytest.mark.parametrize("wrap", [lambda v: [v, v], lambda v: {"a": v, "b": v}, lambda v: [Optional(v), v]])
def test_comparing_values_with_many_repeated_parts_is_limited(wrap: Callable[[object], object]) -> None:
    a: object = [1]
    b: object = [1]
    for _ in range(60):
        a, b = wrap(a), wrap(b)
    with pytest.raises(CostExceeded, match="actual cost limit exceeded"):
        op.equal(a, b)
    with pytest.raises(CostExceeded, match="actual cost limit exceeded"):
        op.not_equal(a, b)
