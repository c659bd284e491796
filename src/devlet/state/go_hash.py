"""The checksum of the kubelet's device checkpoint: FNV-1a, 32 bits, over a dump of Go values.

The kubelet hashes what a Go debugging library prints for its structs, not the JSON that it writes. So null and empty
differ (`<nil>`, `[]`), strings are not quoted, and bytes are decimal numbers.

One step of FNV-1a is `(state ^ byte) * PRIME`, and the byte meets only the low eight bits. Hence what a text does to a
state depends on those bits alone:

    after(state, text) == after(low, text) + (state - low) * PRIME ** len(text)      low = state & 255, all mod 2 ** 32

A text that was hashed once per low byte never needs to be read again, wherever it stands.
"""

from array import array
from collections.abc import Iterable, Sequence

from fnv_hash_fast import fnv1a_32

from devlet.state.go_json import utf8

BASIS = 0x811C9DC5
PRIME = 0x01000193
_MODULUS = 1 << 32
_MASK = _MODULUS - 1

NIL = b"<nil>"
_DECIMALS = [b"%d" % number for number in range(256)]


def _lead(low: int) -> tuple[bytes, int]:
    """The byte that takes the standard start to a state that ends in `low`, and that state without `low`."""
    byte = ((low * pow(PRIME, -1, 256)) & 255) ^ (BASIS & 255)
    state = ((BASIS ^ byte) * PRIME) & _MASK
    return bytes([byte]), state - low


_LEADS = [_lead(low) for low in range(256)]


def after(state: int, text: bytes) -> int:
    low = state & 255
    power = pow(PRIME, len(text), _MODULUS)
    return (_from_low(low, text, power) + (state - low) * power) & _MASK


def _from_low(low: int, text: bytes, power: int) -> int:
    """The library can only start at BASIS, but one byte in front of the text leads from there to any low byte."""
    byte, rest = _LEADS[low]
    return int(fnv1a_32(byte + text) - rest * power) & _MASK


class Piece:
    """A text that is hashed again and again, after other texts each time."""

    __slots__ = ("_power", "_results", "text")

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._power = pow(PRIME, len(text), _MODULUS)
        self._results = array("I", bytes(4 * 256))  # by low byte; 0 is not known yet, or really 0

    def after(self, state: int) -> int:
        low = state & 255
        if not (result := self._results[low]):
            byte, rest = _LEADS[low]  # as `_from_low`: a call would cost as much as the rest of this function
            result = self._results[low] = (fnv1a_32(byte + self.text) - rest * self._power) & _MASK
        return (result + (state - low) * self._power) & _MASK


def strings(values: Sequence[str] | None) -> bytes:
    """A list of strings as Go dumps it."""
    return NIL if values is None else b"[%b]" % utf8(" ".join(values))


def octets(blob: bytes | None) -> bytes:
    """Bytes as Go dumps them."""
    return NIL if blob is None else b"[%b]" % b" ".join([_DECIMALS[byte] for byte in blob])


def mapping(items: Iterable[tuple[bytes, Sequence[str] | None]] | None) -> bytes:
    """A map to lists of strings as Go dumps it. The caller has sorted it."""
    if items is None:
        return NIL
    return b"map[%b]" % b" ".join([b"%b:%b" % (key, strings(values)) for key, values in items])
