import math
from collections.abc import Callable
from typing import Any

import pytest

from devlet.cel import operators as op
from devlet.cel.types import DOUBLE, INT, list_of
from devlet.cel.values import NONE, Duration, Optional, Timestamp, Uint
from devlet.objects.values import semver
from devlet.objects.values.quantity import Quantity

Errors = Callable[..., str]
QUANTITY = Quantity.parse("1")
VERSION = semver.parse("1.2.3")


class Defaults(dict[str, Any]):
    def __missing__(self, key: str) -> Any:
        return {}


class Device:
    model = "x"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1.0),
        (1, Uint(1)),
        (2**53 + 1, float(2**53)),
        ([1, [2.0]], (1, [2])),
        ({"a": 1}, {"a": Uint(1)}),
        ({1.0: "x"}, {1: "x"}),
        (None, None),
        (Optional(1), Optional(1.0)),
        (NONE, NONE),
        (list_of(INT), list_of(DOUBLE)),
        (QUANTITY, Quantity.parse("1000m")),
        (VERSION, semver.parse("1.2.3+build")),
        (Timestamp(5, 3600), Timestamp(5)),
        (b"a", b"a"),
    ],
)
def test_values_of_different_types_can_be_equal(a: object, b: object) -> None:
    assert op.equal(a, b)
    assert not op.not_equal(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, True),
        (0, False),
        (0.0, False),
        (1, "1"),
        ("a", b"a"),
        (math.nan, math.nan),
        (math.nan, 1),
        (1, math.nan),
        ([1], [1, 2]),
        ([1], {"a": 1}),
        ({1: 1}, {True: 1}),
        ({1: "x"}, {1.0: "x"}),
        ({"a": 1}, {"b": 1}),
        (None, 0),
        (0, None),
        (Optional(1), NONE),
        (Optional(1), 1),
        (INT, DOUBLE),
        (Duration(5), Timestamp(5)),
        (Device(), 1),
        ("a", VERSION),
        (1, QUANTITY),
        (QUANTITY, None),
    ],
)
def test_everything_else_is_not_equal_without_an_error(a: object, b: object) -> None:
    assert op.equal(a, b) is False
    assert op.not_equal(a, b)


@pytest.mark.spec("DA-4.3g")
@pytest.mark.parametrize("left", [QUANTITY, VERSION])
def test_a_quantity_or_version_left_of_another_type_is_an_error_but_not_equal(error_of: Errors, left: object) -> None:
    assert error_of(op.equal, left, "1") == "no such overload"
    assert op.equal("1", left) is False
    assert op.not_equal(left, "1") and op.not_equal("1", left)


def test_inside_of_a_list_or_map_what_cannot_be_compared_counts_as_equal() -> None:
    assert op.equal([QUANTITY], [1])
    assert op.equal({"a": VERSION}, {"a": 1})
    assert not op.equal([QUANTITY, 1], [1, 2])


def test_in_a_list_made_with_plus_what_cannot_be_compared_is_an_error(error_of: Errors) -> None:
    assert error_of(op.equal, op.add([QUANTITY], [1]), [1, 1]) == "no such overload"
    assert op.equal(op.add([QUANTITY], [1]), [1, 2]) is False


def test_an_optional_does_not_hide_the_error_of_its_value(error_of: Errors) -> None:
    assert error_of(op.equal, Optional(QUANTITY), Optional(None)) == "no such overload"


def test_a_map_with_defaults_on_the_right_has_every_key() -> None:
    assert op.equal({"a": {}}, Defaults(b={}))
    assert not op.equal(Defaults(b={}), {"a": {}})
