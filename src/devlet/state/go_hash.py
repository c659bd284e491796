"""The checksum of the kubelet's device checkpoint: FNV-1a, 32 bits, over a dump of Go values.

The kubelet hashes what a Go debugging library prints for its structs, not the JSON that it writes. So null and empty
differ (`<nil>`, `[]`), strings are not quoted, and bytes are decimal numbers.

One step of FNV-1a is `(state ^ byte) * PRIME`, and the byte affects only the low eight bits. So the effect of a text on
a state depends only on those bits:

    after(state, text) == after(low, text) + (state - low) * PRIME ** len(text)      low = state & 255, all mod 2 ** 32

So a text that was hashed once per low byte never has to be hashed again, wherever it occurs.
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
    """Return the byte that leads from BASIS to a state that ends in `low`, and that state without `low`."""
    byte = ((low * pow(PRIME, -1, 256)) & 255) ^ (BASIS & 255)
    state = ((BASIS ^ byte) * PRIME) & _MASK
    return bytes([byte]), state - low


_LEADS = [_lead(low) for low in range(256)]


def after(state: int, text: bytes) -> int:
    low = state & 255
    power = pow(PRIME, len(text), _MODULUS)
    return (_from_low(low, text, power) + (state - low) * power) & _MASK


def _from_low(low: int, text: bytes, power: int) -> int:
    """Hash the text after the low byte. The library can only start at BASIS, but one byte leads from there to any low
    byte."""
    byte, rest = _LEADS[low]
    return int(fnv1a_32(byte + text) - rest * power) & _MASK


class Piece:
    """A text that is hashed many times, after different states."""

    __slots__ = ("_power", "_results", "text")

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._power = pow(PRIME, len(text), _MODULUS)
        self._results = array("I", bytes(4 * 256))  # by low byte; 0 means not computed yet, or 0

    def after(self, state: int) -> int:
        low = state & 255
        if not (result := self._results[low]):
            byte, rest = _LEADS[low]  # like `_from_low`, inlined because a call would double the time
            result = self._results[low] = (fnv1a_32(byte + self.text) - rest * self._power) & _MASK
        return (result + (state - low) * self._power) & _MASK


def strings(values: Sequence[str] | None) -> bytes:
    """Dump a list of strings like Go."""
    return NIL if values is None else b"[%b]" % utf8(" ".join(values))


def octets(blob: bytes | None) -> bytes:
    """Dump bytes like Go."""
    return NIL if blob is None else b"[%b]" % b" ".join([_DECIMALS[byte] for byte in blob])


def mapping(items: Iterable[tuple[bytes, Sequence[str] | None]] | None) -> bytes:
    """Dump a map to lists of strings like Go. The caller sorts it."""
    if items is None:
        return NIL
    return b"map[%b]" % b" ".join([b"%b:%b" % (key, strings(values)) for key, values in items])
