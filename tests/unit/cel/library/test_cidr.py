"""Networks."""

from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cel.library.cidr import is_cidr, parse_cidr
from devlet.cel.library.ip import parse_ip
from devlet.cel.values import CelError

_ADDRESSES: st.SearchStrategy[Any] = st.one_of(
    st.ip_addresses(v=4), st.ip_addresses(v=6).map(lambda address: _unmapped(int(address)))
)
_FAILED = "network address parse error during conversion from string"


def _unmapped(number: int) -> IPv6Address:
    address = IPv6Address(number)
    return IPv6Address(number | 1 << 127) if address.ipv4_mapped else address


@given(_ADDRESSES, st.integers(0, 32), _ADDRESSES)
def test_networks_contain_what_python_says_they_do(address: Any, length: int, other: Any) -> None:
    network, python = parse_cidr(f"{address}/{length}"), ip_network(f"{address}/{length}", strict=False)
    assert str(network.masked()) == str(python)
    assert network.contains_ip(parse_ip(str(other))) == (ip_address(str(other)) in python)
    assert network.contains(parse_cidr(f"{other}/{length}")) == (
        other.version == address.version and ip_network(f"{other}/{length}", strict=False).subnet_of(python)  # type: ignore[arg-type]
    )


@given(_ADDRESSES, st.integers(0, 32))
def test_a_network_reads_back_with_the_bits_after_the_prefix(address: Any, length: int) -> None:
    text = f"{address}/{length}"
    assert str(parse_cidr(text)) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("10.0.0.0", "no '/'"),
        ("10.0.0.0/33", "prefix length out of range"),
        ("10.0.0.0/08", 'bad bits after slash: "08"'),
        ("10.0.0.0/", 'bad bits after slash: ""'),
        ("10.0.0.0/+8", 'bad bits after slash: "+8"'),
        ("10.0.0.0/9999999999999999999", 'bad bits after slash: "9999999999999999999"'),
        ("fe80::1%a/8", "IPv6 zones cannot be present in a prefix"),
        ("10.0.0/8", 'ParseAddr("10.0.0"): IPv4 address too short'),
    ],
)
def test_the_reason_is_the_one_of_the_reference(text: str, reason: str) -> None:
    with pytest.raises(CelError) as e:
        parse_cidr(text)
    assert str(e.value) == f'{_FAILED}: {_FAILED}: netip.ParsePrefix("{text}"): {reason}'
    assert not is_cidr(text)


def test_mapped_addresses_are_refused() -> None:
    with pytest.raises(CelError, match="IPv4-mapped IPv6 address"):
        parse_cidr("::ffff:1.2.3.0/120")


def test_texts_and_values_can_be_asked_for(value: Callable[..., Any], error: Callable[..., str]) -> None:
    assert value('cidr("10.0.0.0/8").containsIP("10.1.2.3") && cidr("10.0.0.0/8").containsIP(ip("10.1.2.3"))')
    assert value('cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16") && !cidr("10.0.0.0/8").containsCIDR(cidr("::/8"))')
    assert error('cidr("10.0.0.0/8").containsIP("10")') == "no such overload"
    assert error('cidr("10.0.0.0/8").containsCIDR("10")').endswith("netip.ParsePrefix(\"10\"): no '/'")


def test_a_network_has_parts_and_a_type(value: Callable[..., Any]) -> None:
    assert value('string(cidr("10.1.2.3/8").ip()) + string(cidr("10.1.2.3/8").masked())') == "10.1.2.310.0.0.0/8"
    assert value('type(cidr("::/0")) == net.CIDR && cidr("::/64").prefixLength() == 64')
    assert value('cidr("10.0.0.0/8") == cidr("10.0.0.0/8") && cidr("10.1.0.0/8") != cidr("10.0.0.0/8")')
