from typing import Any

import pytest

from devlet.cel.ast import walk

A = 'device.attributes["gpu.example.com"]'

DEEP = {
    "parentheses": "(" * 200 + f"{A}.mig" + ")" * 200,
    "negations": "(!" * 110 + f"{A}.mig" + ")" * 110,
    "and to the right": f"{A}.mig && (" * 60 + "true" + ")" * 60,
    "and, or": f"{A}.mig && ({A}.index == 1 || (" * 30 + "true" + "))" * 30,
    "conditions": f"{A}.mig ? 1 : (" * 60 + "2" + ")" * 60,
    "lists": "[" * 100 + f"{A}.mig" + "]" * 100 + " == []",
    "variables": "".join(f"cel.bind(v{i}, {f'v{i - 1} + 1' if i else '1'}, " for i in range(80)) + "v79" + ")" * 80,
}
LONG = {
    "sums": " + ".join(["size(device.driver)"] * 200),
    "texts": " + ".join(["device.driver"] * 200),
    "ands": " && ".join([f"{A}.index == 3"] * 200),
    "ors of ands": " || ".join([f"({A}.index == 3 && {A}.mig)"] * 100),
    "plain ands": " && ".join(["device.driver == 'x'"] * 450),
    "elements": "[" + ", ".join(["device.driver"] * 650) + "].size()",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
def test_deep_expressions_are_supported(bench: Any, text: str) -> None:
    bench.check(text)


@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
def test_long_expressions_are_supported(bench: Any, text: str) -> None:
    assert bench.source(text)
    bench.check(text)


def test_every_node_is_visited_once(bench: Any) -> None:
    checked, _ = bench.compiled(f"[1].all(x, {A}.?y.orValue({{'a': x}}) == device.driver.startsWith('a'))")
    ids = [node.id for node in walk(checked.parsed.root)]
    assert len(ids) == len(set(ids)) > 15


@pytest.mark.parametrize("text", ["google.protobuf.Int64Value{value: 1} == 1", "dyn(1).value() == 1"])
def test_unusual_expressions_are_left_to_the_evaluator(bench: Any, text: str) -> None:
    assert not bench.source(text)
    bench.check(text)
