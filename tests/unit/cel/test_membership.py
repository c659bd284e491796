from typing import Any

import pytest

from devlet.cel.membership import Members, members
from devlet.cel.values import CelError, Duration, Uint
from devlet.objects.values.semver import parse


@pytest.mark.parametrize(
    ("elements", "value", "found"),
    [
        (["a", "b"], "a", True),
        (["a", "b"], "c", False),
        ([1, 2], 1, True),
        ([1, 2], 1.0, True),
        ([1, 2], Uint(1), True),
        ([1, 2], True, False),
        ([True], 1, False),
        ([True], True, True),
        ([1.0], 1, True),
        ([1.5], 1, False),
        ([-1], Uint(2**64 - 1), False),
        ([Uint(2**64 - 1)], -1, False),
        ([float("nan")], float("nan"), False),
        ([float("inf")], 1, False),
        (["a"], Duration(1), False),
        (["a"], None, False),
        ([1], [1], False),
    ],
)
def test_numbers_are_found_by_value_and_others_by_type_and_value(elements: list[Any], value: Any, found: bool) -> None:
    assert Members(elements).has(value) is found


@pytest.mark.spec("DA-4.3e")
@pytest.mark.parametrize(("value", "name"), [(parse("1.0.0"), "cel.Semver"), (b"a", "types.Bytes")])
def test_versions_and_bytes_cannot_be_looked_up(value: Any, name: str) -> None:
    with pytest.raises(CelError, match=f"hash of unhashable type {name}"):
        Members(["a"]).has(value, 3)


def test_only_simple_values_make_a_set() -> None:
    assert members(["a", 1]) is not None
    assert members([[1]]) is None
    assert members([b"a"]) is None
    assert members([None]) is None


def test_a_generator_may_ask_for_the_texts() -> None:
    assert Members(["a", 1, "b"]).texts == {"a", "b"}
