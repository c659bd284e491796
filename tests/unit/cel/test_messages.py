from typing import Any

import pytest

from devlet.cel.messages import make
from devlet.cel.values import CelError, Duration, Timestamp, Uint


@pytest.mark.parametrize(
    ("name", "fields", "value"),
    [
        ("Int64Value", {"value": 1}, 1),
        ("Int64Value", {}, 0),
        ("StringValue", {}, ""),
        ("UInt32Value", {"value": Uint(3)}, Uint(3)),
        ("BoolValue", {"value": True}, True),
        ("Duration", {"seconds": 1, "nanos": 2}, Duration(1_000_000_002)),
        ("Timestamp", {"seconds": 1}, Timestamp(10**9)),
        ("ListValue", {"values": [1]}, [1]),
        ("ListValue", {}, []),
        ("Struct", {"fields": {"a": 1}}, {"a": 1}),
        ("Value", {"string_value": "a"}, "a"),
        ("Value", {"null_value": 0}, None),
        ("Value", {}, None),
    ],
)
def test_a_known_message_is_a_value(name: str, fields: dict[str, Any], value: Any) -> None:
    made = make(f"google.protobuf.{name}", fields)
    assert made == value
    assert type(made) is type(value)


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(CelError, match="overflow"):
        make("google.protobuf.Int32Value", {"value": 2**31})
    with pytest.raises(CelError, match="timestamp overflow"):
        make("google.protobuf.Timestamp", {"seconds": 2**60})


def test_nothing_else_can_be_made() -> None:
    with pytest.raises(CelError, match=r"unknown type 'kubernetes\.DRADevice'"):
        make("kubernetes.DRADevice", {})
