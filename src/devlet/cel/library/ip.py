"""IP addresses: `ip("10.0.0.1").isLoopback()`. IPv4 inside IPv6 (`::ffff:1.2.3.4`) and zones are rejected.

Python's `ipaddress` is not suitable: it accepts other strings than Go's netip, and its error texts differ.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, NoReturn

from devlet.cel.functions import Function, Library, Overload
from devlet.cel.library.go_text import quoted
from devlet.cel.library.ranges import STRING_FACTOR, one, scan, scan_cost
from devlet.cel.types import BOOL, INT, STRING, Type, opaque
from devlet.cel.values import CelError

IP_TYPE: Final = opaque("net.IP")

_hex = re.compile("[0-9a-fA-F]*").match
_MAPPED = 0xFFFF


class BadAddress(ValueError):
    """The string is not an address. The text is the reference's."""


@dataclass(frozen=True, slots=True)
class IP:
    """An address. `bits` is 32 or 128."""

    cel_type: ClassVar[Type] = IP_TYPE

    value: int
    bits: int

    @property
    def is_mapped(self) -> bool:
        return self.bits == 128 and self.value >> 32 == _MAPPED

    def starts_with(self, prefix: int, length: int) -> bool:
        return self.value >> (self.bits - length) == prefix

    def cel_size(self) -> int:
        return self.bits // 8

    def __str__(self) -> str:
        if self.bits == 32:
            return _text4(self.value)
        return f"::ffff:{_text4(self.value & 0xFFFFFFFF)}" if self.is_mapped else _text6(self.value)


def _text4(value: int) -> str:
    return ".".join(map(str, value.to_bytes(4)))


def _text6(value: int) -> str:
    """Format an IPv6 address. The first of the longest runs of two or more zero groups is left out."""
    groups = [f"{value >> shift & 0xFFFF:x}" for shift in range(112, -1, -16)]
    start, length = max(((i, _zeros(groups[i:])) for i in range(8)), key=lambda run: run[1])
    if length < 2:
        return ":".join(groups)
    return f"{':'.join(groups[:start])}::{':'.join(groups[start + length :])}"


def _zeros(groups: list[str]) -> int:
    return next((i for i, group in enumerate(groups) if group != "0"), len(groups))


# Parsing


def parse_address(text: str) -> tuple[IP, str]:
    """Return the address and its zone (`fe80::1%eth0`). Raises BadAddress."""
    first = next((character for character in text if character in ".:%"), "")
    if first == ".":
        return IP(_read4(text, text), 32), ""
    if first == ":":
        return _read6(text)
    _refuse(text, "missing IPv6 address" if first else "unable to parse IP")


def _refuse(text: str, why: str, at: str = "") -> NoReturn:
    raise BadAddress(f"ParseAddr({quoted(text)}): {why}{f' (at {quoted(at)})' if at else ''}")


def _read4(text: str, part: str) -> int:
    octets = [0]
    previous = "."
    for i, character in enumerate(part):
        if "0" <= character <= "9":
            if previous != "." and octets[-1] == 0:
                _refuse(text, "IPv4 field has octet with leading zero")
            octets[-1] = octets[-1] * 10 + int(character)
            if octets[-1] > 255:
                _refuse(text, "IPv4 field has value >255")
        elif character == ".":
            if previous == "." or i == len(part) - 1:
                _refuse(text, "IPv4 field must have at least one digit", part[i:])
            if len(octets) == 4:
                _refuse(text, "IPv4 address too long")
            octets.append(0)
        else:
            _refuse(text, "unexpected character", part[i:])
        previous = character
    if len(octets) < 4:
        _refuse(text, "IPv4 address too short")
    return int.from_bytes(octets)


def _read6(text: str) -> tuple[IP, str]:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        _refuse(text, "zone must be a non-empty string")
    groups, gap = _groups(text, rest)
    if gap is None:
        if len(groups) < 8:
            _refuse(text, "address string too short")
    elif len(groups) == 8:
        _refuse(text, "the :: must expand to at least one field of zeros")
    else:
        groups[gap:gap] = [0] * (8 - len(groups))
    return IP(int.from_bytes(b"".join(group.to_bytes(2) for group in groups)), 128), zone


def _groups(text: str, rest: str) -> tuple[list[int], int | None]:
    """Return the groups that are written, and where `::` stands between them."""
    groups: list[int] = []
    gap: int | None = None
    if rest.startswith("::"):
        gap, rest = 0, rest[2:]
        if not rest:
            return groups, gap
    while len(groups) < 8:
        digits = _digits(text, rest)
        if rest[len(digits) : len(digits) + 1] == ".":
            groups += _embedded(text, rest, len(groups), gap)
            return groups, gap
        groups.append(int(digits, 16))
        rest = rest[len(digits) :]
        if not rest:
            return groups, gap
        rest = _after_colon(text, rest)
        if rest.startswith(":"):
            if gap is not None:
                _refuse(text, "multiple :: in address", rest)
            gap, rest = len(groups), rest[1:]
            if not rest:
                return groups, gap
    _refuse(text, "trailing garbage after address", rest)


def _digits(text: str, rest: str) -> str:
    match = _hex(rest)
    digits = match[0] if match else ""
    if len(digits) > 4:
        _refuse(text, "each group must have 4 or less digits", rest)
    if not digits:
        _refuse(text, "each colon-separated field must have at least one digit", rest)
    return digits


def _embedded(text: str, rest: str, before: int, gap: int | None) -> tuple[int, int]:
    if gap is None and before != 6:
        _refuse(text, "embedded IPv4 address must replace the final 2 fields of the address", rest)
    if before > 6:
        _refuse(text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)
    return divmod(_read4(text, rest), 0x10000)


def _after_colon(text: str, rest: str) -> str:
    if rest[0] != ":":
        _refuse(text, "unexpected character, want colon", rest)
    if len(rest) == 1:
        _refuse(text, "colon must be followed by more characters", rest)
    return rest[1:]


# The library


def parse_ip(text: str) -> IP:
    """Parse the argument of `ip(text)`."""
    try:
        address, zone = parse_address(text)
    except BadAddress as e:
        raise CelError(f"IP Address {quoted(text)} parse error during conversion from string: {e}") from e
    if zone:
        raise CelError(f"IP address {quoted(text)} with zone value is not allowed")
    if address.is_mapped:
        raise CelError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return address


def is_ip(text: str) -> bool:
    try:
        parse_ip(text)
    except CelError:
        return False
    return True


def _is_canonical(text: str) -> bool:
    return str(parse_ip(text)) == text


def _family(ip: IP) -> int:
    return 4 if ip.bits == 32 else 6


def _is_unspecified(ip: IP) -> bool:
    return ip.value == 0


def _is_loopback(ip: IP) -> bool:
    return ip.starts_with(127, 8) if ip.bits == 32 else ip.value == 1


def _is_multicast(ip: IP) -> bool:
    return ip.starts_with(0xE, 4) if ip.bits == 32 else ip.starts_with(0xFF, 8)


def _is_link_local_multicast(ip: IP) -> bool:
    return ip.starts_with(0xE00000, 24) if ip.bits == 32 else ip.value >> 112 & 0xFF0F == 0xFF02


def _is_link_local_unicast(ip: IP) -> bool:
    return ip.starts_with(0xA9FE, 16) if ip.bits == 32 else ip.starts_with(0x3FA, 10)


def _is_global_unicast(ip: IP) -> bool:
    """Return whether the address is global unicast. Private addresses count as global."""
    broadcast = ip.bits == 32 and ip.value == 0xFFFFFFFF
    return not (broadcast or _is_unspecified(ip) or _is_loopback(ip) or _is_multicast(ip) or _is_link_local_unicast(ip))


def _question(name: str, id: str, answer: Callable[[IP], bool]) -> Function:
    return Function(name, (Overload(id, (IP_TYPE,), BOOL, answer, is_member=True, estimate=one),))


def _reader(name: str, id: str, result: Type, call: Callable[[str], object], factor: float = STRING_FACTOR) -> Function:
    return Function(name, (Overload(id, (STRING,), result, call, estimate=scan(factor), cost=scan_cost(factor)),))


LIBRARY: Final = Library(
    "kubernetes.net.ip",
    (
        _reader("ip", "string_to_ip", IP_TYPE, parse_ip),
        _reader("isIP", "is_ip", BOOL, is_ip),
        _reader("ip.isCanonical", "ip_is_canonical", BOOL, _is_canonical, 2 * STRING_FACTOR),
        Function("family", (Overload("ip_family", (IP_TYPE,), INT, _family, is_member=True, estimate=one),)),
        _question("isUnspecified", "ip_is_unspecified", _is_unspecified),
        _question("isLoopback", "ip_is_loopback", _is_loopback),
        _question("isLinkLocalMulticast", "ip_is_link_local_multicast", _is_link_local_multicast),
        _question("isLinkLocalUnicast", "ip_is_link_local_unicast", _is_link_local_unicast),
        _question("isGlobalUnicast", "ip_is_global_unicast", _is_global_unicast),
        Function("string", (Overload("ip_to_string", (IP_TYPE,), STRING, str),)),
    ),
    types=(IP_TYPE,),
)
