"""IP addresses."""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cel.library.ip import IP, BadAddress, is_ip, parse_address, parse_ip
from devlet.cel.values import CelError


@given(st.integers(0, 2**32 - 1))
def test_every_ipv4_address_reads_back(number: int) -> None:
    text = str(IPv4Address(number))
    assert str(parse_ip(text)) == text
    assert parse_ip(text) == IP(number, 32)


@given(st.one_of(st.integers(0, 2**128 - 1), st.integers(0, 2**16).map(lambda n: n << 64 | n)))
def test_every_ipv6_address_reads_back_from_any_of_its_texts(number: int) -> None:
    address = IP(number, 128)
    if address.is_mapped:
        return
    for text in (str(address), IPv6Address(number).exploded, IPv6Address(number).compressed.upper()):
        assert parse_ip(text) == address


@given(st.text("0123456789abcdefF:.%/g ", max_size=20))
def test_a_text_is_an_address_or_refused_with_a_reason(text: str) -> None:
    try:
        assert is_ip(str(parse_ip(text)))
    except CelError as e:
        assert text in str(e) and not is_ip(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "unable to parse IP"),
        ("%eth0", "missing IPv6 address"),
        ("1.2.3", "IPv4 address too short"),
        ("1.2.3.4.5", "IPv4 address too long"),
        ("1..2.3", 'IPv4 field must have at least one digit (at ".2.3")'),
        ("01.2.3.4", "IPv4 field has octet with leading zero"),
        ("1.2.3.256", "IPv4 field has value >255"),
        ("1.2.3.x", 'unexpected character (at "x")'),
        (":::1", 'each colon-separated field must have at least one digit (at ":1")'),
        ("1::2::3", 'multiple :: in address (at ":3")'),
        ("1:2:3:4:5:6:7", "address string too short"),
        ("1:2:3:4:5:6:7:8:9", 'trailing garbage after address (at "9")'),
        ("1:2:3:4:5:6:7:8::", "the :: must expand to at least one field of zeros"),
        ("12345::", 'each group must have 4 or less digits (at "12345::")'),
        ("1:", 'colon must be followed by more characters (at ":")'),
        ("1:2-3", 'unexpected character, want colon (at "-3")'),
        ("1:1.2.3.4", 'embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")'),
        ("::1%", "zone must be a non-empty string"),
    ],
)
def test_the_reason_is_the_one_of_the_reference(text: str, reason: str) -> None:
    with pytest.raises(BadAddress) as e:
        parse_address(text)
    assert str(e.value) == f'ParseAddr("{text}"): {reason}'


def test_an_embedded_address_needs_two_free_groups() -> None:
    with pytest.raises(BadAddress, match="too many hex fields"):
        parse_address("::1:2:3:4:5:6:7:1.2.3.4")


def test_zones_and_mapped_addresses_are_read_but_not_for_expressions(error: Callable[..., str]) -> None:
    assert parse_address("fe80::1%eth0") == (IP(0xFE80 << 112 | 1, 128), "eth0")
    assert str(parse_address("::ffff:1.2.3.4")[0]) == "::ffff:1.2.3.4"
    assert error('ip("fe80::1%eth0")') == 'IP address "fe80::1%eth0" with zone value is not allowed'
    assert error('ip("::ffff:1.2.3.4")') == 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'


@pytest.mark.parametrize(
    ("question", "yes", "no"),
    [
        ("isUnspecified", ("0.0.0.0", "::"), ("0.0.0.1", "::1")),
        ("isLoopback", ("127.9.9.9", "::1"), ("128.0.0.1", "::2")),
        ("isLinkLocalMulticast", ("224.0.0.9", "ff02::1", "ff12::1"), ("224.0.1.1", "ff03::1")),
        ("isLinkLocalUnicast", ("169.254.1.1", "fe80::1", "febf::1"), ("169.253.1.1", "fec0::1")),
        ("isGlobalUnicast", ("10.0.0.1", "2001:db8::1"), ("255.255.255.255", "0.0.0.0", "ff00::1", "fe80::1", "::1")),
    ],
)
def test_addresses_answer_questions(
    value: Callable[..., Any], question: str, yes: tuple[str, ...], no: tuple[str, ...]
) -> None:
    assert [value(f'ip("{text}").{question}()') for text in (*yes, *no)] == [True] * len(yes) + [False] * len(no)


def test_the_canonical_form_is_short_and_in_small_letters(value: Callable[..., Any]) -> None:
    texts = ("127.0.0.1", "2001:db8::abcd", "2001:DB8::ABCD", "2001:db8::0:0:0:abcd", "1::2:0:0:0:3", "1::2:0:0:3")
    assert [value("ip.isCanonical(x)", x=text) for text in texts] == [True, True, False, False, False, True]


def test_addresses_are_values_with_a_family_a_text_and_a_type(value: Callable[..., Any]) -> None:
    assert value('string(ip("2001:DB8::1")) + string(ip("::1").family())') == "2001:db8::16"
    assert value('type(ip("::1")) == net.IP && ip("::1") == ip("0::1") && ip("0.0.0.0") != ip("::")')
