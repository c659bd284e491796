from typing import Any

import pytest
import yaml

from devlet.kit.json_yaml import MAX_DUPLICATES, MAX_NUMBER, TooManyContainers, load
from devlet.kit.yaml_depth import MAX_DEPTH


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: {b: [1, c]}", {"a": {"b": [1, "c"]}}),
        ("- ~\n- null\n-\n- Null", [None] * 4),
        ("[true, True, yes, On, y]", [True, True, True, True, "y"]),
        ("[false, FALSE, no, Off, n]", [False, False, False, False, "n"]),
        ("[0, -1, +2, 1_000]", [0, -1, 2, 1000]),
        ("[0x1F, -0x_f, 017, 0o17, 0b101, 08]", [31, -15, 15, 15, 5, "08"]),
        ("[1.5, .5, 2., 1e3, 1.5e-3, -1E+2]", [1.5, 0.5, 2.0, 1000.0, 0.0015, -100.0]),
        ("[18446744073709551615, 18446744073709551616]", [2**64 - 1, 2.0**64]),
        ("['1', \"2\", !!str 3]", ["1", "2", "3"]),
        ("[!!int 5, !!float 6, !!bool yes, !!null ~]", [5, 6, True, None]),
        ("!!map {a: !!seq [b]}", {"a": ["b"]}),
        ("{1: a, 1.5: b, true: c, '': d}", {"1": "a", "1.5": "b", "true": "c", "": "d"}),
        ("a: |\n  b\n  c\n", {"a": "b\nc\n"}),
        ("&anchor a", "a"),
        ("=", "="),
    ],
)
def test_scalars_mean_what_they_mean_to_kubernetes(text: str, value: Any) -> None:
    assert load(text).value == value


@pytest.mark.parametrize("text", ["1:30", "190:20:30", "1:30.5", "2026-01-01", "2026-01-01T00:00:00Z", "-", "+", "."])
def test_what_is_a_number_or_a_date_in_yaml_only_is_a_string(text: str) -> None:
    assert load(f"[{text}]" if text != "-" else '["-"]').value == [text]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: &x [1]\nb: *x", "aliases are not allowed, in line 2, column 4"),
        ("a: {<<: {b: 1}}", "merge keys"),
        ("!!set {a}", "tag:yaml.org,2002:set is not supported"),
        ("!!omap [{a: 1}]", "omap is not supported"),
        ("!!binary YQ==", "binary is not supported"),
        ("!!timestamp 2026-01-01", "timestamp is not supported"),
        ("!!python/object:os.system {}", "is not supported"),
        ("!mine [1]", "is not supported"),
        ("!!int a", "does not fit its tag"),
        ("? [1]\n: 2", "a key must be a string"),
        ("? {a: 1}\n: 2", "a key must be a string"),
        ("~: 1", "a key must not be null"),
        ("[.inf]", "cannot be written in JSON"),
        ("[-.INF]", "cannot be written in JSON"),
        ("[.nan]", "cannot be written in JSON"),
        ("1e999", "out of range"),
        ("7" * (MAX_NUMBER + 1), f"more than {MAX_NUMBER}"),
        ("---\na\n---\nb", "expected a single document"),
        ("[" * (MAX_DEPTH + 1), f"nested more than {MAX_DEPTH} levels deep"),
        ("a: [", "expected"),
        ("a: b: c", "not allowed"),
    ],
)
def test_what_is_not_json_is_an_error_that_says_so(text: str, problem: str) -> None:
    with pytest.raises(yaml.YAMLError, match=problem):
        load(text)


def test_the_deepest_nesting_that_is_allowed_is_read() -> None:
    value = load("[" * MAX_DEPTH + "]" * MAX_DEPTH).value
    for _ in range(MAX_DEPTH - 1):
        (value,) = value
    assert value == []


def test_keys_that_occur_twice_are_listed_with_their_paths_up_to_a_limit() -> None:
    loaded = load("a: 1\nb: {c: [{d: 1, d: 2}, x]}\na: {e: 1, e: 2}")
    assert loaded.duplicates == ("b.c[0].d", "a", "a.e")
    assert loaded.value == {"a": {"e": 2}, "b": {"c": [{"d": 2}, "x"]}}
    assert len(load("a: 1\n" * 10 * MAX_DUPLICATES).duplicates) == MAX_DUPLICATES


def test_a_number_of_any_length_that_is_quoted_is_a_string() -> None:
    assert load(f'"{"7" * 10_000}"').value == "7" * 10_000


def test_sexagesimal_numbers_of_a_megabyte_are_read_as_the_string_that_they_are() -> None:
    text = "1" + ":1" * 600_000
    assert load(f"a: {text}").value == {"a": text}


def test_the_caller_limits_the_number_of_mappings_and_lists() -> None:
    assert load("[{}, {}, []]", max_containers=4).value == [{}, {}, []]
    with pytest.raises(TooManyContainers, match="limit is 3 objects and lists"):
        load("[{}, {}, []]", max_containers=3)
