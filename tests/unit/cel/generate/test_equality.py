from typing import Any

import pytest

from devlet.cel.issues import CompileError

A = 'device.attributes["gpu.example.com"]'
SIDES = [
    f"{A}.model", f"{A}.index", f"{A}.version", f"{A}.tags", "'a100'", "3", "dyn(3)", "dyn(3.0)", "dyn(3u)", "true",
    "dyn(true)", "null", "[1]", "dyn(0.0 / 0.0)", "semver('1.0.0+a')", "quantity('1')", "quantity('1').add(1)",
    "dyn(quantity('1'))", "b'a'", "duration('1s')", "dyn(duration('1s'))", "{'a': 1}",
]  # fmt: skip


@pytest.mark.parametrize("left", SIDES)
@pytest.mark.parametrize("sign", ["==", "!=", "<", ">=", "in"])
def test_operators_mean_the_same_generated_and_evaluated(bench: Any, left: str, sign: str) -> None:
    for right in [*SIDES, "['a100', '3']", "[1, 3]", "[dyn(1.0), dyn(true)]", "[]"]:
        try:
            bench.compiled(f"{left} {sign} {right}")
        except CompileError:
            continue
        bench.check(f"{left} {sign} {right}")


def test_a_comparison_of_quantities_is_one_of_numbers(bench: Any) -> None:
    text = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'
    assert ".nano >= k" in bench.source(text)
    assert bench.check(text)[:2] == [True, True]


def test_a_version_in_a_constant_list_ends_the_evaluation_whatever_follows(bench: Any) -> None:
    results = bench.check(f"{A}.version in ['1.2.3'] || true")
    assert "unhashable" in results[0].message and results[2] is True


def test_an_error_before_a_version_in_a_list_does_not_hide_it(bench: Any) -> None:
    bench.check(f"({A}.nope == ({A}.version in ['1.2.3'])) || true")
