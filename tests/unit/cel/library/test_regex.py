import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cel.functions import Range, SizedNode
from devlet.cel.library.regex import (
    LIBRARY,
    MATCHES,
    MAX_CLASSES,
    MAX_LENGTH,
    MAX_MEMORY,
    compiled,
    find,
    find_all,
    matches,
)
from devlet.cel.types import STRING
from devlet.cel.values import CelError, CostExceeded


def error_of(pattern: str) -> str:
    with pytest.raises(CelError) as caught:
        compiled(pattern)
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("abc", "b", True),
        ("abc", "^b", False),
        ("ABC", "(?i)b", True),
        ("ä", "^.$", True),
        ("a\nb", "a.b", False),
        ("a\nb", "(?s)a.b", True),
        ("abc", r"\pL+", True),
        ("C", r"\QC\E", True),
        ("", "", True),
    ],
)
def test_a_pattern_matches_anywhere(text: str, pattern: str, expected: bool) -> None:
    assert matches(text, pattern) is expected


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("abc(", "missing closing ): `abc(`"),
        ("abc)", "unexpected ): `abc)`"),
        ("abc[", "missing closing ]: `[`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("|*", "missing argument to repetition operator: `*`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?P<n!>a)", "invalid named capture: `(?P<n!>`"),
        ("\\", "trailing backslash at end of expression: ``"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\pX", r"invalid character class range: `\pX`"),
    ],
)
def test_a_wrong_pattern_is_explained_in_the_words_of_the_reference(pattern: str, text: str) -> None:
    assert error_of(pattern) == f"error parsing regexp: {text}"


def test_find_says_that_the_pattern_is_illegal() -> None:
    with pytest.raises(CelError, match=r"Illegal regex: error parsing regexp: missing closing \)"):
        find("a", "(")


def test_a_value_that_is_not_a_string_has_no_match() -> None:
    for args, text in (((1, "a"), "no such overload: matches"), (("a", 1), "no such overload")):
        with pytest.raises(CelError) as caught:
            matches(*args)
        assert caught.value.message == text


@pytest.mark.parametrize(
    ("text", "pattern", "found"),
    [
        ("baaac", "a*", ["", "aaa", ""]),
        ("äö", "", ["", "", ""]),
        ("abc", "b|$", ["b", ""]),
        ("aXbX", "X|$", ["X", "X"]),
        ("aaa", "^a", ["a"]),
        ("a\nb", "(?m)^.", ["a", "b"]),
        ("x☃y☃", "☃", ["☃", "☃"]),
        ("abc", "x", []),
    ],
)
def test_an_empty_match_right_behind_another_does_not_count(text: str, pattern: str, found: list[str]) -> None:
    assert find_all(text, pattern) == found


def test_find_all_stops_at_its_limit() -> None:
    assert find_all("abcd", ".", 2) == ["a", "b"]
    assert find_all("abcd", ".", 0) == []
    assert find_all("abcd", ".", -7) == ["a", "b", "c", "d"]


def test_find_has_the_first_match_or_nothing() -> None:
    assert find("xaay", "a+") == "aa"
    assert find("xy", "a+") == ""


@given(st.text(alphabet="abä"), st.sampled_from(["a", "a+", "[ab]", "ab|b", "ä+b"]))
def test_python_finds_the_same_where_no_match_is_empty(text: str, pattern: str) -> None:
    assert find_all(text, pattern) == re.findall(pattern, text)


def test_a_pattern_that_explodes_elsewhere_takes_no_time() -> None:
    assert not matches("a" * 50_000 + "!", "^(a+)+$")


def test_a_pattern_that_looks_at_everything_for_each_match_is_stopped() -> None:
    with pytest.raises(CostExceeded, match="actual cost limit exceeded"):
        find_all("a" * 200_000, "(a*b)?")


def test_a_pattern_that_would_need_too_much_memory_is_refused() -> None:
    assert error_of("(((a{100}){100}){100}){100}").startswith("error parsing regexp: ")


OVERLOADS = {overload.id: overload for function in (MATCHES, *LIBRARY.functions) for overload in function.overloads}


@pytest.mark.parametrize("id", ["matches_string", "string_find_string", "string_find_all_string_int"])
def test_the_cost_is_that_of_the_text_times_that_of_the_pattern(id: str) -> None:
    actual, estimate = OVERLOADS[id].cost, OVERLOADS[id].estimate
    assert actual and estimate
    assert actual(["a" * 29, "b" * 9], None) == 3 * 3
    call = estimate(SizedNode(STRING, (), Range(0, 99)), [SizedNode(STRING, (), Range(4, 4))])
    assert call and call.cost == Range(1, 10)
    assert call.size == (None if id == "matches_string" else Range(0, 99))


def test_matches_called_as_a_function_has_no_cost_of_its_own() -> None:
    assert OVERLOADS["matches"].cost is None and OVERLOADS["matches"].estimate is None


def test_groups_may_not_be_nested_without_end() -> None:
    with pytest.raises(CelError, match="expression nests too deeply"):
        compiled("(" * 3000 + "a" + ")" * 3000)


def test_an_answer_that_is_remembered_is_the_same() -> None:
    pattern = compiled("^a[0-9]+$")
    assert [pattern.matches(text) for text in ("a1", "b1", "a1", "b1")] == [True, False, True, False]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a" * (MAX_LENGTH + 1), f"{MAX_LENGTH + 1} bytes, limit {MAX_LENGTH}"),
        (r"\pL" * (MAX_CLASSES + 1), f"{MAX_CLASSES + 1} Unicode classes, limit {MAX_CLASSES}"),
        (r"\PL" * (MAX_CLASSES + 1), f"{MAX_CLASSES + 1} Unicode classes, limit {MAX_CLASSES}"),
        (r"\pL{900}", f"more than {MAX_MEMORY} bytes when compiled"),
        (r"(?:\pL?\pN?){90}", f"more than {MAX_MEMORY} bytes when compiled"),
    ],
)
def test_a_pattern_that_takes_long_to_compile_is_refused_with_its_limit(pattern: str, reason: str) -> None:
    assert error_of(pattern) == f"error parsing regexp: expression too large: {reason}: `{pattern}`"


@pytest.mark.parametrize("pattern", ["a" * MAX_LENGTH, r"\pL" * 20, "[[:alpha:]]{1000}", "a?" * 2000, "(a{30}){30}"])
def test_large_patterns_within_the_limits_are_compiled(pattern: str) -> None:
    assert compiled(pattern).work > 0
