from typing import Any

import pytest

A = 'device.attributes["gpu.example.com"]'

EXPRESSIONS = [
    f"{A}.model",
    f"{A}['model']",
    "device.attributes.nope.model",
    "device.attributes['nope']['nope']",
    "device.attributes[device.driver].index",
    f"{A}.tags[0]",
    f"{A}.tags[5]",
    f"{A}.tags[{A}.index]",
    f"{A}.tags['x']",
    f"{A}.model.x.y",
    "{1: 'a', 2: 'b'}[dyn(1.0)]",
    "{1: 'a', 2: 'b'}[dyn(true)]",
    "[1, 2][dyn(1u)]",
    "has(device.driver)",
    "has(device.attributes.nope)",
    f"has({A}.model)",
    f"has({A}.tags.x)",
    f"has({A}.?model.x)",
    f"{A}.?model",
    "device.attributes[?'nope']",
    "device.?driver",
    "device.?attributes.nope.?nope",
    f"{A}.?tags[0]",
    f"{A}.?tags[?7]",
    f"{A}.?nope.x.y",
    f"{A}.tags[?0]",
    f"{A}[?device.driver]",
    "[device][0].driver",
    "[device].first().value().driver",
    "optional.of({'a': 1}).a",
    "optional.of({'a': dyn(optional.of({'b': 1}))}).?a.b",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_access_means_the_same_generated_and_evaluated(bench: Any, text: str) -> None:
    bench.check(text)


def test_a_chain_is_one_expression(bench: Any) -> None:
    assert "a0.attributes[k2][k3]" in bench.source(f"{A}.model == 'x'")


def test_a_missing_key_is_the_error_of_the_part_that_asks_for_it(bench: Any) -> None:
    *_, error = bench.check(f"{A}.model == 'x'")
    checked, _plan = bench.compiled(f"{A}.model == 'x'")
    assert (error.message, error.node) == ("no such key: model", checked.parsed.root.args[0].id)


def test_devices_that_lack_the_same_key_share_one_error(bench: Any) -> None:
    first, *others = bench.filter(f"{A}.nope == 'x'")(bench.devices)
    assert all(other is first for other in others)
