"""Functions on versions."""

from collections.abc import Callable
from typing import Any

import pytest

from devlet.objects.values.semver import parse


def test_texts_become_versions(value: Callable[..., Any], error: Callable[..., str]) -> None:
    assert value('semver("1.2.3-rc.1")') == parse("1.2.3-rc.1")
    assert value('semver("v01.2", true)') == parse("1.2.0")
    assert error('semver("1.2")') == "No Major.Minor.Patch elements found"
    assert error('semver("1-a", true)') == "short version cannot contain PreRelease/Build meta data"
    assert value('[isSemver("1.0"), isSemver("1.0", true), isSemver("1.0", false), isSemver("1.0.0")]') == [
        False,
        True,
        False,
        True,
    ]


def test_versions_have_numbers_and_an_order(value: Callable[..., Any]) -> None:
    assert value('cel.bind(v, semver("1.2.3"), [v.major(), v.minor(), v.patch()])') == [1, 2, 3]
    assert value('semver("1.0.0-a").isLessThan(semver("1.0.0")) && semver("1.0.1").isGreaterThan(semver("1.0.0"))')
    assert value('semver("1.0.0+a").compareTo(semver("1.0.0+b")) == 0 && semver("1.0.0+a") == semver("1.0.0+b")')


def test_a_number_beyond_63_bits_comes_out_negative(value: Callable[..., Any]) -> None:
    assert value('semver("18446744073709551615.0.0").major()') == -1


@pytest.mark.parametrize("other", ['"1.0.0"', "1", "null"])
def test_a_version_is_compared_with_versions_only(run: Callable[..., Any], other: str) -> None:
    left = run(f'dyn(semver("1.0.0")) == {other}')
    assert left.value is False if other == "null" else left.error.message == "no such overload"
    assert run(f'dyn({other}) == semver("1.0.0")').value is False
