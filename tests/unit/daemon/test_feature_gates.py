from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.daemon.feature_gates import NAMES, defaults, gate, parse


def test_gates_are_written_as_for_the_kubelet() -> None:
    text = "DRAExtendedResource=false, ResourceHealthStatus=True,"
    assert parse(text) == {"DRAExtendedResource": False, "ResourceHealthStatus": True}
    assert parse("") == {}


def test_the_last_word_about_a_gate_counts() -> None:
    assert parse("ResourceHealthStatus=false,ResourceHealthStatus=true") == {"ResourceHealthStatus": True}


def test_all_but_one_are_on_from_the_start() -> None:
    assert [name for name in NAMES if not defaults()[name]] == ["DRAWorkloadResourceClaims"]
    assert defaults() is not defaults()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DRAExtendedResource", "'DRAExtendedResource': expected NAME=true or NAME=false"),
        ("DRAExtendedResource=yes", "DRAExtendedResource: 'yes': expected true or false"),
        ("ResourceHealth=true", "did you mean ResourceHealthStatus"),
        ("=true", "unknown feature gate ''"),
        (None, "None is not a list of feature gates such as DRAExtendedResource=true"),
    ],
)
def test_an_unknown_gate_is_rejected_with_the_known_ones(text: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_a_gate_that_is_like_no_other_is_answered_with_the_list() -> None:
    with pytest.raises(ValueError) as caught:
        gate("Nonsense", True)
    assert str(caught.value) == f"unknown feature gate 'Nonsense': devlet knows {', '.join(NAMES)}"


@given(st.text())
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        assert parse(text).keys() <= set(NAMES)
    except ValueError as e:
        assert len(str(e)) < 600
