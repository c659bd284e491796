import math

import pytest

from devlet.cel.lexer import tokenize
from devlet.cel.literals import double_value, int_value, literal_value, string_value, uint_value
from devlet.cel.values import Uint


def test_ints_reach_from_the_least_to_the_largest_of_64_bits() -> None:
    assert int_value("9223372036854775807", negative=False) == 2**63 - 1
    assert int_value("9223372036854775808", negative=True) == -(2**63)
    assert int_value("0x7FFFFFFFFFFFFFFF", negative=False) == 2**63 - 1
    assert int_value("0x8000000000000000", negative=True) == -(2**63)
    assert int_value("000000000000000000000000000000000000012", negative=False) == 12


@pytest.mark.parametrize("text", ["9223372036854775808", "0x8000000000000000", "9" * 90_000])
def test_a_larger_int_is_invalid(text: str) -> None:
    with pytest.raises(ValueError, match=r"^invalid int literal$"):
        int_value(text, negative=False)


def test_uints_have_a_type_of_their_own() -> None:
    assert type(uint_value("18446744073709551615u")) is Uint
    assert uint_value("0xFFu") == 255
    with pytest.raises(ValueError, match=r"^invalid uint literal$"):
        uint_value("18446744073709551616u")


def test_doubles_may_be_too_small_but_not_too_large() -> None:
    assert double_value("1.5e3", negative=True) == -1500.0
    assert double_value("1e-999", negative=False) == 0.0
    assert math.copysign(1, double_value("0.0", negative=True)) == -1
    with pytest.raises(ValueError, match=r"^invalid double literal$"):
        double_value("1e999", negative=False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a"', "a"),
        ("''", ""),
        (r'''"\a\b\f\n\r\t\v\\\?\"\'\`"''', "\a\b\f\n\r\t\v\\?\"'`"),
        (r'"\x41\X42\103\u0044\U00000045\xff"', "ABCDE\u00ff"),
        ('"""a"b"""', 'a"b'),
        ("'''a\r\nb\rc'''", "a\nb\nc"),
        (r'r"\n\d"', r"\n\d"),
        (r"R'''\x41'''", r"\x41"),
        ("b'é'", "é".encode()),
        (r"b'\x41\xff\377'", b"A\xff\xff"),
        (r"br'\x41'", rb"\x41"),
        (r'"\U0001F600"', "\U0001f600"),
    ],
)
def test_strings_lose_quotes_and_escapes(text: str, value: str | bytes) -> None:
    assert string_value(text) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (r'"\ud800"', "invalid unicode code point"),
        (r'"\U00110000"', "invalid unicode code point"),
        (r"b'\u0041'", "unable to unescape string"),
        (r"b'\U00000041'", "unable to unescape string"),
    ],
)
def test_invalid_escapes_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        string_value(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("false", False), ("null", None), ("1", -1), ("1u", Uint(1)), ("1.5", -1.5), ("'a'", "a")],
)
def test_the_kind_of_the_token_determines_the_type_of_the_value(text: str, value: object) -> None:
    found = literal_value(tokenize(text).tokens[0], negative=isinstance(value, int | float) and value < 0)
    assert (found, type(found)) == (value, type(value))
