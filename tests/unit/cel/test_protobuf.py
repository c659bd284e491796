"""Well-known messages of protobuf."""

import pytest

from devlet.cel.protobuf import ENUM_VALUES, FIELDS, MESSAGES, message_name
from devlet.cel.types import BOOL, DYN, INT, STRING, list_of, map_of


def test_a_wrapper_is_a_type_that_may_be_null() -> None:
    wrapper = MESSAGES["google.protobuf.Int32Value"]
    assert wrapper == INT
    assert wrapper.nullable
    assert FIELDS["google.protobuf.Int32Value"] == {"value": INT}


def test_json_messages_are_values_lists_and_maps() -> None:
    assert MESSAGES["google.protobuf.Value"] == DYN
    assert MESSAGES["google.protobuf.ListValue"] == list_of(DYN)
    assert MESSAGES["google.protobuf.Struct"] == map_of(STRING, DYN)


@pytest.mark.parametrize("name", ["Any", "Duration", "Timestamp", "Value", "Struct", "ListValue", "Int64Value"])
def test_the_message_of_a_type_is_found_again(name: str) -> None:
    full = f"google.protobuf.{name}"
    assert message_name(MESSAGES[full]) == full


def test_most_types_have_no_message() -> None:
    assert message_name(BOOL) is None
    assert message_name(list_of(INT)) is None
    assert message_name(map_of(STRING, STRING)) is None


def test_every_message_has_fields_even_if_none() -> None:
    assert set(FIELDS) == set(MESSAGES)
    assert FIELDS["google.protobuf.Empty"] == {}


def test_there_is_one_enum_value() -> None:
    assert dict(ENUM_VALUES) == {"google.protobuf.NullValue.NULL_VALUE": 0}
