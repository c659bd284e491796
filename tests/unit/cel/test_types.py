"""Two ways to write a type, and the types of values."""

import pytest

from devlet.cel.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    ERROR,
    INT,
    LIST,
    MAP,
    NULL,
    OPTIONAL,
    QUANTITY,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Kind,
    Type,
    describe,
    list_of,
    map_of,
    object_type,
    opaque,
    optional_of,
    runtime_type,
    type_name,
    type_of,
    unwrap_optional,
)
from devlet.cel.values import NONE, Duration, Optional, Timestamp, Uint
from devlet.objects.values.quantity import Quantity

NULLABLE = Type(Kind.INT, nullable=True)


@pytest.mark.spec("DA-4.4t")
@pytest.mark.parametrize(
    ("t", "in_messages", "as_output"),
    [
        (INT, "int", "int"),
        (ANY, "any", "google.protobuf.Any"),
        (NULL, "null", "null_type"),
        (DURATION, "duration", "google.protobuf.Duration"),
        (TIMESTAMP, "timestamp", "google.protobuf.Timestamp"),
        (DYN, "dyn", "dyn"),
        (ERROR, "!error!", "error"),
        (TYPE, "type", "type"),
        (type_of(INT), "type(int)", "type(int)"),
        (QUANTITY, "kubernetes.Quantity", "kubernetes.Quantity"),
        (OPTIONAL, "optional_type", "optional_type"),
        (optional_of(ANY), "optional_type(any)", "optional_type(google.protobuf.Any)"),
        (map_of(STRING, list_of(ANY)), "map(string, list(any))", "map(string, list(google.protobuf.Any))"),
        (NULLABLE, "wrapper(int)", "wrapper(int)"),
        (Type(Kind.UNRESOLVED, "_var3"), "_var3", "<_var3>"),
    ],
)
def test_messages_and_output_types_are_written_differently(t: Type, in_messages: str, as_output: str) -> None:
    assert describe(t) == in_messages
    assert str(t) == as_output


class Opaque:
    cel_type = opaque("net.IP")


class Lines(list[str]):
    pass


@pytest.mark.parametrize(
    ("value", "t"),
    [
        (None, NULL),
        (True, BOOL),
        (1, INT),
        (Uint(1), UINT),
        (1.0, DOUBLE),
        ("a", STRING),
        (b"a", BYTES),
        (Duration(1), DURATION),
        (Timestamp(1), TIMESTAMP),
        ([1], LIST),
        ((1,), LIST),
        (Lines(), LIST),
        ({}, MAP),
        (Optional(1), OPTIONAL),
        (NONE, OPTIONAL),
        (INT, TYPE),
        (Quantity.parse("1Gi"), QUANTITY),
        (Opaque(), opaque("net.IP")),
    ],
)
def test_a_value_has_a_type(value: object, t: Type) -> None:
    assert runtime_type(value) == t
    assert type_name(value) == t.type_name


def test_an_object_of_the_host_is_a_map_at_run_time_as_in_the_reference() -> None:
    assert type_name(object()) == "map"


def test_what_is_in_an_optional_can_be_unwrapped_once() -> None:
    assert unwrap_optional(optional_of(optional_of(INT))) == (optional_of(INT), True)
    assert unwrap_optional(INT) == (INT, False)
    assert unwrap_optional(OPTIONAL) == (OPTIONAL, False)


def test_a_number_that_may_be_null_equals_a_number() -> None:
    assert NULLABLE == INT


def test_types_with_the_same_name_but_of_different_kinds_differ() -> None:
    assert opaque("kubernetes.Quantity") != object_type("kubernetes.Quantity")
