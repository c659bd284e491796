import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.objects.protobuf import wire as wire
from devlet.objects.protobuf.wire import Malformed


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_integer_survives(number: int) -> None:
    data = wire.varint(number)
    read, at = wire.read_varint(data, 0, len(data))
    assert (wire.signed64(read), at) == (number, len(data))
    assert len(data) == 10 if number < 0 else len(data) <= 9


@pytest.mark.parametrize(("number", "low"), [(0xFFFFFFFF, -1), (1 << 32, 0), (0x80000000, -(2**31)), (5, 5)])
def test_a_32_bit_number_is_the_lower_half(number: int, low: int) -> None:
    assert wire.signed32(number) == low


def test_a_number_beyond_its_bounds_is_not_read() -> None:
    with pytest.raises(Malformed, match="middle of a number"):
        wire.read_varint(b"\x80\x01", 0, 1)
    with pytest.raises(Malformed, match="more than ten bytes"):
        wire.read_varint(b"\x80" * 10 + b"\x01", 0, 11)


@given(st.binary(max_size=300))
def test_a_value_with_a_length_is_found_where_it_was_put(payload: bytes) -> None:
    data = wire.delimited(b"\x0a", payload) + b"rest"
    start, stop = wire.read_bounds(data, 1, len(data))
    assert data[start:stop] == payload
    assert wire.skip(data, 1, len(data), wire.DELIMITED) == stop


@given(st.binary(max_size=60))
def test_members_of_arbitrary_bytes_end_or_are_malformed(data: bytes) -> None:
    try:
        found = list(wire.members(data, 0, len(data)))
    except Malformed as wrong:
        assert str(wrong)
    else:
        assert len(found) <= len(data)
