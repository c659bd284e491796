from typing import Any

import pytest

A = 'device.attributes["gpu.example.com"]'

EXPRESSIONS = [
    f"[{A}.model, {A}.index]",
    f"[{A}.index, {A}.mig, dyn(2), dyn(3), dyn(4), dyn(5), dyn(6), dyn(7), dyn(8), {A}.nope]",
    f"[?{A}.?model, dyn('x')]",
    "[?optional.of(device.driver), ?optional.none()]",
    f"{{'a': {A}.model, device.driver: dyn(1)}}",
    f"{{?'a': {A}.?model, 'b': dyn(1)}}",
    "{'a': 1, ?'a': optional.none()}",
    f"{{{A}.index: 1, dyn(3): 2}}",
    "[]",
    "{}",
    "[[device.driver], []]",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_literals_mean_the_same_generated_and_evaluated(bench: Any, text: str) -> None:
    bench.check(text)


def test_every_evaluation_makes_its_own_list(bench: Any) -> None:
    first, second, *_ = bench.filter("[device.driver]")(bench.devices)
    assert first == second and first is not second
