from typing import Any

import pytest

A = 'device.attributes["gpu.example.com"]'

EXPRESSIONS = [
    "device.driver.startsWith('gpu')",
    f"{A}.model.startsWith('a')",
    f"{A}.model.endsWith(device.driver)",
    f"device.driver.contains({A}.model)",
    f"size({A}.model)",
    "size(device.driver) + device.attributes.size() + [1, 2].size() + size(b'abc')",
    f"{A}.version.isGreaterThan(semver('1.2.0'))",
    f"{A}.version.isLessThan(semver('nope'))",
    f"{A}.version.compareTo(semver('1.3.0')) == 0",
    f"{A}.version.compareTo({A}.version) == 0",
    "dyn(0.5).compareTo(semver('1.2.0')) <= 0",
    'device.capacity["gpu.example.com"].memory.isLessThan(quantity("50Gi"))',
    'device.capacity["gpu.example.com"].memory == quantity("40Gi")',
    'device.capacity["gpu.example.com"].memory.isLessThan(quantity("x")) || true',
    "(device.driver == 'x' ? quantity('1') : null).isLessThan(quantity('2'))",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_functions_mean_the_same_generated_and_evaluated(bench: Any, text: str) -> None:
    bench.check(text)


def test_a_constant_quantity_is_read_once(bench: Any) -> None:
    source = bench.source('device.capacity["gpu.example.com"].memory.isLessThan(quantity("50Gi"))')
    assert "(a0.capacity[k2][k3].nano < k5.nano)" in source


def test_a_constant_that_cannot_be_read_fails_only_where_it_is_reached(bench: Any) -> None:
    assert set(bench.check("device.driver == 'x' && quantity('x') == quantity('1')")) == {False}
