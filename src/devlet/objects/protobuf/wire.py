"""The protobuf wire format as far as Kubernetes uses it: varints and length-delimited values.

Readers take the whole buffer and the bounds of their part, so that nested messages are not copied. Integers are never
zigzag-encoded: a negative one is its 64-bit two's complement and takes ten bytes.
"""

from collections.abc import Iterator

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5

_MASK64 = (1 << 64) - 1


class Malformed(Exception):
    """The bytes are malformed. The text says what is wrong, but not where."""


def varint(number: int) -> bytes:
    """Encode an integer between -2⁶³ and 2⁶⁴ - 1."""
    if 0 <= number < 0x80:
        return _SMALL[number]
    rest = number & _MASK64
    made = bytearray()
    while rest >= 0x80:
        made.append(rest & 0x7F | 0x80)
        rest >>= 7
    made.append(rest)
    return bytes(made)


_SMALL = tuple(bytes((number,)) for number in range(0x80))


def tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def delimited(start: bytes, payload: bytes) -> bytes:
    """Return a tag followed by a length-delimited value."""
    return b"%b%b%b" % (start, varint(len(payload)), payload)


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the unsigned number and the next offset."""
    number = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & _MASK64, at
        shift += 7
        if shift >= 70:
            raise Malformed("a number takes more than ten bytes")
    raise Malformed("the data ends in the middle of a number")


def read_bounds(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the bounds of a length-delimited value."""
    if at < end and data[at] < 0x80:
        start = at + 1
        stop = start + data[at]
    else:
        size, start = read_varint(data, at, end)
        stop = start + size
    if stop > end:
        raise Malformed(f"a value of {stop - start} bytes is announced where {end - start} are left")
    return start, stop


def skip(data: bytes, at: int, end: int, wire: int) -> int:
    """Return the offset after the value of an unknown field."""
    match wire:
        case 0:
            return read_varint(data, at, end)[1]
        case 1 | 5:
            stop = at + (8 if wire == FIXED64 else 4)
            if stop > end:
                raise Malformed("the data ends in the middle of a number")
            return stop
        case 2:
            return read_bounds(data, at, end)[1]
    raise Malformed(f"wire type {wire} is not used by Kubernetes")


def members(data: bytes, at: int, end: int) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field, numbers unsigned. Fixed-size values are skipped."""
    while at < end:
        key, at = read_varint(data, at, end)
        if key & 7 == VARINT:
            number, at = read_varint(data, at, end)
            yield key >> 3, number
        elif key & 7 == DELIMITED:
            start, at = read_bounds(data, at, end)
            yield key >> 3, data[start:at]
        else:
            at = skip(data, at, end, key & 7)


def signed32(number: int) -> int:
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number & 0x80000000 else number


def signed64(number: int) -> int:
    return number - (1 << 64) if number & 0x8000000000000000 else number
