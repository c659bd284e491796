"""Texts by the name of their format."""

from collections.abc import Callable
from typing import Any

import pytest

from devlet.cel.library.named_formats import FORMATS


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("dns1123Label", ("my-name", "1a"), ("My", "a.b", "a" * 64)),
        ("dns1123Subdomain", ("a.b", "x"), ("a..b", "A")),
        ("dns1035Label", ("a1",), ("1a",)),
        ("qualifiedName", ("example.com/My_Name", "x"), ("a/b/c", "/x")),
        ("dns1123LabelPrefix", ("abc-", "aB-", "a"), ("-", "a--é-", "äa-", "aä-", "B")),
        ("dns1123SubdomainPrefix", ("a.b-",), ("a._b-",)),
        ("dns1035LabelPrefix", ("ab-",), ("1b-",)),
        ("labelValue", ("", "A_b"), ("a b", "-")),
        ("uri", ("http://example.com", "/x"), ("", "x")),
        ("uuid", ("123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"), ("123", "é")),
        ("byte", ("aGVsbG8=",), ("aGVsbG8", "", "a\n")),
        (
            "date",
            ("2021-01-31", "2020-02-29", "2000-02-29", "0000-01-01"),
            ("2021-02-29", "1900-02-29", "2021-13-01", "21-1-1", "2021-00-01", "2021-01-00"),
        ),
        (
            "datetime",
            ("2021-01-01T00:00:00Z", "2021-01-01t23:59:59.9+01:00"),
            ("2021-01-01", "2021-01-01T24:00:00Z", "2021-13-01T00:00:00Z", "t"),
        ),
    ],
)
def test_a_format_accepts_valid_and_rejects_invalid_strings(
    value: Callable[..., Any], name: str, good: tuple[str, ...], bad: tuple[str, ...]
) -> None:
    def errors(text: str) -> Any:
        return value(f"format.{name}().validate(x).orValue([])", x=text)

    assert [errors(text) for text in good] == [[]] * len(good)
    assert all(map(errors, bad)), bad


def test_the_messages_are_those_of_the_api_server(value: Callable[..., Any]) -> None:
    assert value('format.dns1123Label().validate("a.b").value()') == ["must not contain dots"]
    assert value('format.uri().validate("a").value()') == ['parse "a": invalid URI for request']
    assert value('format.uuid().validate("a").value()') == ["does not match the UUID format"]


def test_formats_have_names_and_are_compared_by_them(value: Callable[..., Any]) -> None:
    for name in FORMATS:
        assert value(f'format.named("{name}").value() == format.{name}()')
    assert value('!format.named("other").hasValue() && format.date() != format.datetime()')
    assert FORMATS["date"] != 1 and len(set(FORMATS.values())) == len(FORMATS)


def test_a_check_costs_by_the_length_of_the_text_and_of_the_pattern(run: Callable[..., Any]) -> None:
    short, long = (run(f'format.{name}().validate("{"a" * 30}").hasValue()').cost for name in ("dns1123Label", "uri"))
    assert (short, long) == (2 + 4 * 8, 2 + 4 * 276)
