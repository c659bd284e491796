"""Semantic versions. Texts of errors are those of the reference's CEL."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import InvalidInput
from devlet.objects.values.semver import MAX_TEXT, Semver, is_semver, parse, parse_normalized

# From the specification, lowest first, with neighbours of our own.
ASCENDING = [
    "0.0.0-0",
    "0.0.0",
    "0.0.1",
    "0.9.0",
    "0.10.0",
    "1.0.0--",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.2",
    "1.0.0-alpha.10",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1-rc",
    "2.0.0",
    "18446744073709551615.0.0",
]

REFUSED = {
    "": "Version string empty",
    "1.0": "No Major.Minor.Patch elements found",
    "v1.0.0": 'Invalid character(s) found in major number "v1"',
    "1.x.0": 'Invalid character(s) found in minor number "x"',
    "1.0.0.0": 'Invalid character(s) found in patch number "0.0"',
    "1.0.0\n": 'Invalid character(s) found in patch number "0\\n"',
    "01.0.0": 'Major number must not contain leading zeroes "01"',
    "1.00.0": 'Minor number must not contain leading zeroes "00"',
    "1.0.01": 'Patch number must not contain leading zeroes "01"',
    "1.0.": 'strconv.ParseUint: parsing "": invalid syntax',
    "18446744073709551616.0.0": 'strconv.ParseUint: parsing "18446744073709551616": value out of range',
    "1.0.0-": "Prerelease is empty",
    "1.0.0-a..b": "Prerelease is empty",
    "1.0.0-01": 'Numeric PreRelease version must not contain leading zeroes "01"',
    "1.0.0-a_b": 'Invalid character(s) found in prerelease "a_b"',
    "1.0.0-é": 'Invalid character(s) found in prerelease "é"',
    "1.0.0+": "Build meta data is empty",
    "1.0.0+a_b": 'Invalid character(s) found in build meta data "a_b"',
    "1.0.0+a+b": 'Invalid character(s) found in build meta data "a+b"',
}

numbers = st.integers(0, 2**64 - 1)
words = st.from_regex(r"\A[0-9A-Za-z-]*[A-Za-z-][0-9A-Za-z-]*\Z") | numbers.map(str)
tails = st.lists(words, max_size=3).map(".".join)


@st.composite
def versions(draw: st.DrawFn) -> str:
    prerelease, build = draw(tails), draw(tails)
    core = ".".join(str(draw(numbers)) for _ in range(3))
    return core + (f"-{prerelease}" if prerelease else "") + (f"+{build}" if build else "")


def test_precedence_is_that_of_the_specification() -> None:
    for low, high in pairwise(ASCENDING):
        assert parse(low) < parse(high), (low, high)
        assert parse(high).compare(parse(low)) == 1
        assert parse(low).compare(parse(high)) == -1


def test_build_metadata_counts_neither_for_order_nor_for_equality() -> None:
    first, second = parse("1.0.0+a"), parse("1.0.0+b.2")
    assert first == second
    assert hash(first) == hash(second)
    assert first.compare(second) == 0
    assert str(second) == "1.0.0+b.2"


def test_parts_can_be_read() -> None:
    version = parse("12.4.1-rc.1+exp.5114f85")
    assert (version.major, version.minor, version.patch) == (12, 4, 1)
    assert version.prerelease == ("rc", "1")
    assert version.build == ("exp", "5114f85")


@pytest.mark.parametrize(("text", "error"), REFUSED.items())
def test_strict_parsing_refuses(text: str, error: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(text)
    assert str(caught.value) == error
    assert not is_semver(text)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("v1.2.3", "1.2.3"),
        ("v1", "1.0.0"),
        ("1.2", "1.2.0"),
        ("01.01.01", "1.1.1"),
        ("000.00.0", "0.0.0"),
        ("1.2.03-rc.1+b", "1.2.3-rc.1+b"),
        ("1.2.00-rc", "1.2.0-rc"),
    ],
)
def test_normalizing_accepts_what_people_write(text: str, normal: str) -> None:
    assert str(parse_normalized(text)) == normal
    assert is_semver(text, normalize=True)


@pytest.mark.parametrize("text", ["", "vv1", "1.2-rc", "1+b", " 1.0.0", "1..0", "1.0.0.0"])
def test_normalizing_has_limits(text: str) -> None:
    assert not is_semver(text, normalize=True)


def test_a_version_is_not_equal_to_its_text() -> None:
    assert parse("1.0.0") != "1.0.0"


@pytest.mark.parametrize("read", [parse, parse_normalized])
def test_very_long_texts_are_refused(read: Callable[[str], Semver]) -> None:
    with pytest.raises(InvalidInput, match="at most"):
        read("1" * (MAX_TEXT + 1))


@given(versions())
def test_the_text_reads_back(text: str) -> None:
    assert str(parse(text)) == text
    assert str(parse_normalized(f"v{text}")) == text


@given(versions(), versions(), versions())
def test_the_order_is_total(a: str, b: str, c: str) -> None:
    x, y, z = sorted(map(parse, (a, b, c)))
    assert x <= y <= z
    assert z >= y >= x
    assert (x < y) + (x == y) + (x > y) == 1


@given(st.text(max_size=20) | st.text("019.-+av", max_size=14))
def test_any_text_is_read_or_refused(text: str) -> None:
    if is_semver(text):
        assert parse(text) == parse(str(parse(text)))
    else:
        with pytest.raises(InvalidInput):
            parse(text)
