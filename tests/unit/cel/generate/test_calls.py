from typing import Any

import pytest

A = 'device.attributes["gpu.example.com"]'

EXPRESSIONS = [
    f"{A}.index + 1",
    f"{A}.index + {A}.index",
    "9223372036854775807 + size(device.driver)",
    "-9223372036854775807 - size(device.driver) * 2",
    "size(device.driver) / (size(device.driver) - 15)",
    "size(device.driver) * 4611686018427387904",
    "device.driver + '/' + device.driver",
    f"string({A}.model)",
    f"int({A}.index)",
    f"string(-({A}.?tags[?0].value()))",
    f"{A}.tags.distinct().size() + {A}.nope",
    f"[{A}.nope].distinct() == [] || true",
    f"({A}.nope == [[{A}.nada].distinct()]) || true",
    f"{A}.model.matches('^a') && {A}.model.upperAscii() == 'A100'",
    "device.driver.split('.').join('-')",
    "'%s has %d'.format([device.driver, size(device.driver)])",
    "device.driver.substring(100)",
    "type(device.driver) == string",
    "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.1.1')",
    "timestamp('2026-01-01T00:00:00Z') + duration('1h') > timestamp('2026-01-01T00:30:00Z')",
    f"{A}.index.min()",
    "lists.range(size(device.driver)).sum()",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_calls_mean_the_same_generated_and_evaluated(bench: Any, text: str) -> None:
    bench.check(text)


def test_sums_of_known_integers_are_checked_in_place(bench: Any) -> None:
    assert "not -9223372036854775808 <= t" in bench.source("size(device.driver) + 1 == 2")


def test_a_crash_of_the_reference_is_not_absorbed_by_or(bench: Any) -> None:
    results = bench.check(f"[{A}.nope].distinct() == [] || true")
    assert all("internal error" in result.message for result in results)
