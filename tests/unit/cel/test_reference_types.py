from typing import Any

import pytest

from devlet.cel.reference_types import go_type
from devlet.cel.types import INT
from devlet.cel.values import NONE, Duration, Timestamp, Uint
from devlet.objects.values.quantity import Quantity
from devlet.objects.values.semver import parse


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "types.Null"),
        (True, "types.Bool"),
        (1, "types.Int"),
        (Uint(1), "types.Uint"),
        (1.5, "types.Double"),
        ("a", "types.String"),
        (b"a", "types.Bytes"),
        (Duration(1), "types.Duration"),
        (Timestamp(1), "types.Timestamp"),
        (NONE, "*types.Optional"),
        (INT, "*types.Type"),
        ([1], "*types.baseList"),
        ((1,), "*types.baseList"),
        ({}, "*types.baseMap"),
        (Quantity.parse("1"), "cel.Quantity"),
        (parse("1.0.0"), "cel.Semver"),
    ],
)
def test_a_value_has_the_name_of_the_type_that_the_reference_holds_it_in(value: Any, name: str) -> None:
    assert go_type(value) == name
