from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cel.functions import UNBOUNDED, Range, SizedNode
from devlet.cel.library.strings import STRINGS_0, STRINGS_2
from devlet.cel.types import DYN, STRING, list_of
from devlet.cel.values import CelError, CostExceeded

OVERLOADS = {overload.id: overload for function in STRINGS_2.functions for overload in function.overloads}
CALLS = {id: overload.call for id, overload in OVERLOADS.items()}
texts = st.text(alphabet="aäb☃\U0001f600")


def call_error(id: str, *args: Any) -> str:
    with pytest.raises(CelError) as caught:
        CALLS[id](*args)
    return caught.value.message


def estimate(id: str, *sizes: Range | None, literal: Any = None) -> tuple[Range, Range | None]:
    """Cost and size of the result."""
    nodes = [SizedNode(STRING, (), size) for size in sizes]
    if literal is not None:
        nodes.append(SizedNode(DYN, (), Range(1, 1), literal, True))
    estimator = OVERLOADS[id].estimate
    assert estimator
    result = estimator(nodes[0], nodes[1:]) if OVERLOADS[id].is_member else estimator(None, nodes)
    assert result
    return result.cost, result.size


@given(texts, texts, st.integers(0, 8))
def test_a_part_is_found_where_a_walk_through_the_text_finds_it(text: str, part: str, start: int) -> None:
    places = [i for i in range(len(text)) if text[i : i + len(part)] == part]
    if part:
        assert CALLS["string_index_of_string"](text, part) == min(places, default=-1)
        assert CALLS["string_last_index_of_string"](text, part) == max(places, default=-1)
        later = [i for i in places if i >= start]
        assert CALLS["string_index_of_string_int"](text, part, start) == min(later, default=-1)
        earlier = [i for i in places if i <= start] if start < len(text) else []
        assert CALLS["string_last_index_of_string_int"](text, part, start) == max(earlier, default=-1)


def test_nothing_is_found_everywhere() -> None:
    assert CALLS["string_index_of_string"]("abc", "") == 0
    assert CALLS["string_index_of_string_int"]("abc", "", 17) == 17
    assert CALLS["string_last_index_of_string"]("abc", "") == 3
    assert CALLS["string_last_index_of_string_int"]("abc", "", -5) == -5


@pytest.mark.parametrize(
    ("id", "args", "text"),
    [
        ("string_char_at_int", ("abc", 4), "index out of range: 4"),
        ("string_char_at_int", ("abc", -1), "index out of range: -1"),
        ("string_index_of_string_int", ("abc", "a", -1), "index out of range: -1"),
        ("string_last_index_of_string_int", ("abc", "a", -1), "index out of range: -1"),
        ("string_substring_int", ("abc", 4), "index out of range: 4"),
        ("string_substring_int_int", ("abc", 2, 1), "invalid substring range. start: 2, end: 1"),
        ("string_substring_int_int", ("abc", 0, 4), "index out of range: 4"),
        ("string_substring_int_int", ("abc", -1, 2), "index out of range: -1"),
        ("list_join", (["a", 1],), "join: invalid input: 1"),
        ("list_join_string", ([True], ","), "join: invalid input: true"),
    ],
)
def test_positions_outside_of_the_text_are_errors(id: str, args: tuple[Any, ...], text: str) -> None:
    assert call_error(id, *args) == text


@given(texts, st.integers(0, 5), st.integers(0, 5))
def test_substrings_count_code_points(text: str, start: int, end: int) -> None:
    if start <= end <= len(text):
        assert CALLS["string_substring_int_int"](text, start, end) == text[start:end]
        assert CALLS["string_substring_int"](text, start) == text[start:]
        assert CALLS["string_char_at_int"](text, start) == text[start : start + 1]


@given(texts, texts, st.integers(-2, 5))
def test_split_and_join_are_opposites(text: str, separator: str, count: int) -> None:
    parts = CALLS["string_split_string_int"](text, separator, count)
    if count:
        assert CALLS["list_join_string"](parts, separator) == text
    assert len(parts) <= count or count < 0
    assert CALLS["string_split_string"](text, separator) == CALLS["string_split_string_int"](text, separator, -1)


def test_split_by_nothing_gives_the_code_points() -> None:
    assert CALLS["string_split_string"]("ä☃", "") == ["ä", "☃"]
    assert CALLS["string_split_string_int"]("äbc", "", 2) == ["ä", "bc"]
    assert CALLS["string_split_string"]("", "") == []
    assert CALLS["string_split_string"]("", ",") == [""]


def test_replace_can_be_limited_and_can_insert() -> None:
    assert CALLS["string_replace_string_string"]("abab", "a", "x") == "xbxb"
    assert CALLS["string_replace_string_string_int"]("abab", "a", "x", 1) == "xbab"
    assert CALLS["string_replace_string_string_int"]("abab", "a", "x", 0) == "abab"
    assert CALLS["string_replace_string_string_int"]("abab", "a", "x", -9) == "xbxb"
    assert CALLS["string_replace_string_string"]("ab", "", "-") == "-a-b-"


def test_a_text_that_would_fill_the_memory_is_not_made() -> None:
    long = "a" * 10_000
    for id, args in (
        ("string_replace_string_string", (long, "a", long)),
        ("list_join_string", ([""] * 10_000, long)),
        ("string_format", ("%.65535e" * 1000, [1.0] * 1000)),
    ):
        with pytest.raises(CostExceeded):
            CALLS[id](*args)


def test_case_changes_only_ascii_letters() -> None:
    assert CALLS["string_lower_ascii"]("AÄ\u212a") == "aÄ\u212a"
    assert CALLS["string_upper_ascii"]("aäß") == "Aäß"


def test_trim_removes_white_space_of_unicode_but_no_control_characters() -> None:
    assert CALLS["string_trim"](" \u00a0\u3000a\u2009\n") == "a"
    assert CALLS["string_trim"]("\x1ca\u200b") == "\x1ca\u200b"


def test_quote_escapes_what_cannot_stand_in_quotes() -> None:
    assert CALLS["strings_quote"]('a"\n\\\aä') == '"a\\"\\n\\\\\\aä"'


def test_the_old_version_has_no_format_and_no_quote() -> None:
    names = {function.name for function in STRINGS_2.functions} - {function.name for function in STRINGS_0.functions}
    assert names == {"format", "strings.quote"}


@pytest.mark.parametrize(
    ("id", "args", "cost"),
    [
        ("string_lower_ascii", ("a" * 11,), 2),
        ("string_replace_string_string", ("a" * 11, "a", "b"), 3),
        ("string_split_string", ("a" * 11, ","), 3),
        ("list_join", (["a" * 11],), 3),
        ("string_index_of_string", ("ä" * 11, "x"), 2),
        ("string_format", ("a" * 11, []), 2),
        ("strings_quote", ("a" * 11,), 2),
    ],
)
def test_calls_cost_by_the_length_of_the_text(id: str, args: tuple[Any, ...], cost: int) -> None:
    actual = OVERLOADS[id].cost
    assert actual and actual(args, CALLS[id](*args)) == cost


def test_calls_are_estimated_by_the_size_of_the_text() -> None:
    some = Range(5, 100)
    assert estimate("string_trim", some) == (Range(1, 10), some)
    assert estimate("string_index_of_string", some, some) == (Range(1, 10), None)
    assert estimate("string_split_string", some, some) == (Range(1, 20), Range(0, 100))
    assert estimate("string_split_string_int", some, some, literal=7) == (Range(1, 20), Range(0, 7))
    assert estimate("strings_quote", some) == (Range(1, 10), Range(7, 202))
    assert estimate("strings_quote", None)[1] == Range(2, 0)


@pytest.mark.parametrize(
    ("old", "new", "size"),
    [
        (Range(1, 1), Range(3, 3), Range(10, 300)),
        (Range(3, 3), Range(3, 3), Range(10, 100)),
        (Range(3, 3), Range(1, 1), Range(4, 100)),
        (Range(0, 0), Range(1, 1), Range(21, 201)),
        (Range(0, 5), Range(0, 2), Range(0, 302)),
    ],
)
def test_the_size_after_replacing_is_estimated_from_all_sizes(old: Range, new: Range, size: Range) -> None:
    assert estimate("string_replace_string_string", Range(10, 100), old, new) == (Range(2, 20), size)


def test_the_size_of_a_joined_text_is_known_only_if_that_of_the_elements_is() -> None:
    join = OVERLOADS["list_join_string"].estimate
    assert join
    separator = SizedNode(STRING, (), Range(1, 1))
    strings = list_of(STRING)
    known = join(SizedNode(strings, (), Range(2, 4), items=Range(3, 5)), [separator])
    unknown = join(SizedNode(strings, (), Range(2, 4)), [separator])
    dynamic = join(SizedNode(DYN, (), Range(2, 4)), [separator])
    assert [call and call.size for call in (known, unknown, dynamic)] == [
        Range(7, 23),
        Range(1, UNBOUNDED),
        Range(1, 3),
    ]
