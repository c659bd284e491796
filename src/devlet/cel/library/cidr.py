"""Networks: `cidr("10.0.0.0/8").containsIP("10.1.2.3")`. Bits after the prefix are kept until `masked()` clears them.

As in the reference, an invalid address makes `containsIP` fail only with "no such overload".
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from devlet.cel.functions import CallEstimate, CostOf, Estimator, Function, Library, Overload, Range, SizedNode
from devlet.cel.library.go_text import quoted
from devlet.cel.library.ip import IP, IP_TYPE, BadAddress, parse_address, parse_ip
from devlet.cel.library.ranges import (
    ONE,
    STRING_FACTOR,
    actual_size,
    one,
    plus,
    scaled,
    scan,
    scan_cost,
    size_of,
)
from devlet.cel.types import BOOL, INT, STRING, Type, opaque
from devlet.cel.values import INT_MAX, CelError, Value

CIDR_TYPE: Final = opaque("net.CIDR")

_number = re.compile("0|[1-9][0-9]{0,18}").fullmatch
_FAILED = "network address parse error during conversion from string"


@dataclass(frozen=True, slots=True)
class CIDR:
    cel_type: ClassVar[Type] = CIDR_TYPE

    address: IP
    length: int

    def masked(self) -> "CIDR":
        rest = self.address.bits - self.length
        return CIDR(IP(self.address.value >> rest << rest, self.address.bits), self.length)

    def contains_ip(self, other: IP) -> bool:
        bits = self.address.bits
        return bits == other.bits and (self.address.value ^ other.value) >> (bits - self.length) == 0

    def contains(self, other: "CIDR") -> bool:
        return self.length <= other.length and self.contains_ip(other.address)

    def cel_size(self) -> int:
        return math.ceil(self.length / 8)

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"


def parse_cidr(text: str) -> CIDR:
    """Parse the argument of `cidr(text)`."""
    try:
        network = _read(text)
    except BadAddress as e:
        # Checked twice, as in the reference.
        raise CelError(f"{_FAILED}: {_FAILED}: netip.ParsePrefix({quoted(text)}): {e}") from e
    if network.address.is_mapped:
        raise CelError(f"{_FAILED}: IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return network


def is_cidr(text: str) -> bool:
    try:
        parse_cidr(text)
    except CelError:
        return False
    return True


def _read(text: str) -> CIDR:
    before, slash, bits = text.rpartition("/")
    if not slash:
        raise BadAddress("no '/'")
    address, zone = parse_address(before)
    if zone:
        raise BadAddress("IPv6 zones cannot be present in a prefix")
    return CIDR(address, _length(bits, address.bits))


def _length(text: str, limit: int) -> int:
    bits = int(text) if _number(text) else -1
    if not 0 <= bits <= INT_MAX:
        raise BadAddress(f"bad bits after slash: {quoted(text)}")
    if bits > limit:
        raise BadAddress("prefix length out of range")
    return bits


def _contains_ip_text(network: CIDR, text: str) -> bool:
    try:
        return network.contains_ip(parse_ip(text))
    except CelError as e:
        raise CelError("no such overload") from e


def _contains_cidr_text(network: CIDR, text: str) -> bool:
    return network.contains(parse_cidr(text))


# Cost: both addresses are compared, four to sixteen bytes; a string is parsed first.

_BYTES = Range(4, 16)
_COMPARE = scaled(plus(_BYTES, _BYTES), STRING_FACTOR)
_COMPARE_CIDR = plus(_COMPARE, scaled(_BYTES, STRING_FACTOR), ONE)


def _containing(base: Range, reads: bool) -> Estimator:
    def estimate(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
        return CallEstimate(plus(base, scaled(size_of(args[0]), STRING_FACTOR)) if reads else base)

    return estimate


def _containing_ip_cost(args: Sequence[Value], result: Value) -> int:
    return math.ceil(2 * actual_size(args[0]) * STRING_FACTOR)


def _containing_cidr_cost(args: Sequence[Value], result: Value) -> int:
    return _containing_ip_cost(args, result) + math.ceil(actual_size(args[0]) * STRING_FACTOR) + 1


def _and_reading(cost: Callable[[Sequence[Value], Value], int]) -> CostOf:
    return lambda args, result: cost(args, result) + math.ceil(actual_size(args[1]) * STRING_FACTOR)


def _contains(
    name: str, ids: tuple[str, str], other: Type, calls: tuple[Callable[..., bool], Callable[..., bool]], base: Range
) -> Function:
    cost = _containing_ip_cost if other == IP_TYPE else _containing_cidr_cost
    texts = Overload(ids[0], (CIDR_TYPE, STRING), BOOL, calls[0], True, _containing(base, True), _and_reading(cost))
    values = Overload(ids[1], (CIDR_TYPE, other), BOOL, calls[1], True, _containing(base, False), cost)
    return Function(name, (texts, values))


def _member(name: str, id: str, result: Type, call: Callable[[CIDR], object]) -> Function:
    return Function(name, (Overload(id, (CIDR_TYPE,), result, call, is_member=True, estimate=one),))


def _reader(name: str, id: str, result: Type, call: Callable[[str], object]) -> Function:
    return Function(name, (Overload(id, (STRING,), result, call, estimate=scan(), cost=scan_cost()),))


LIBRARY: Final = Library(
    "kubernetes.net.cidr",
    (
        _reader("cidr", "string_to_cidr", CIDR_TYPE, parse_cidr),
        _reader("isCIDR", "is_cidr", BOOL, is_cidr),
        _contains(
            "containsIP",
            ("cidr_contains_ip_string", "cidr_contains_ip_ip"),
            IP_TYPE,
            (_contains_ip_text, CIDR.contains_ip),
            _COMPARE,
        ),
        _contains(
            "containsCIDR",
            ("cidr_contains_cidr_string", "cidr_contains_cidr"),
            CIDR_TYPE,
            (_contains_cidr_text, CIDR.contains),
            _COMPARE_CIDR,
        ),
        _member("ip", "cidr_ip", IP_TYPE, lambda network: network.address),
        _member("prefixLength", "cidr_prefix_length", INT, lambda network: network.length),
        _member("masked", "cidr_masked", CIDR_TYPE, CIDR.masked),
        Function("string", (Overload("cidr_to_string", (CIDR_TYPE,), STRING, str),)),
    ),
    types=(CIDR_TYPE,),
)
