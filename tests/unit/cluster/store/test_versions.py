import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cluster.store.versions import parse_version
from devlet.errors import BadRequest


@given(st.integers(0, 10**19 - 1))
def test_a_version_is_a_decimal_number(number: int) -> None:
    assert parse_version(str(number)) == number


def test_no_version_is_zero() -> None:
    assert (parse_version(""), parse_version("0")) == (0, 0)


@pytest.mark.parametrize("text", ["-1", "+1", "1.0", "0x1", " 1", "1e3", "²", "٣", "1" * 20, "abc"])
def test_anything_else_is_a_bad_request(text: str) -> None:
    with pytest.raises(BadRequest, match="resourceVersion must be a decimal number"):
        parse_version(text)


@given(st.text())
def test_no_text_crashes(text: str) -> None:
    try:
        assert parse_version(text) >= 0
    except BadRequest:
        assert text
