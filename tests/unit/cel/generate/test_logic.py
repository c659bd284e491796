from typing import Any

import pytest

A = 'device.attributes["gpu.example.com"]'

EXPRESSIONS = [
    f"{A}.mig && {A}.index == 3",
    f"{A}.nope && {A}.nada",
    f"{A}.nope || {A}.nada",
    f"{A}.nope && false",
    f"false && {A}.nope",
    f"{A}.nope || true",
    f"{A}.mig && {A}.nope && {A}.index == 0 && {A}.model == 'h100'",
    f"{A}.mig || {A}.nope || {A}.index == 3 || {A}.model == 'h100'",
    f"({A}.mig && {A}.nope) || ({A}.index == 3 && {A}.nada) || device.driver == 'x'",
    f"{A}.model && {A}.mig",
    f"!{A}.mig",
    f"{A}.mig ? {A}.index : {A}.nope",
    f"{A}.model ? 1 : 2",
    f"({A}.mig ? {A} : {{'x': dyn(1)}}).index == 3",
    "device.driver == 'a' || device.driver == 'gpu.example.com'",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_logic_means_the_same_generated_and_evaluated(bench: Any, text: str) -> None:
    bench.check(text)


def test_errors_are_absorbed_from_either_side(bench: Any) -> None:
    assert set(bench.check(f"{A}.nope && false")) == {False} == set(bench.check(f"false && {A}.nope"))
    assert set(bench.check(f"{A}.nope || true")) == {True} == set(bench.check(f"true || {A}.nope"))


def test_the_first_of_two_errors_is_reported(bench: Any) -> None:
    assert {e.message for e in bench.check(f"{A}.nope && {A}.nada")} == {"no such key: nope"}


def test_what_cannot_fail_is_not_tried(bench: Any) -> None:
    assert bench.source("device.driver == 'a' && device.driver == 'b'").count("try:") == 1
    assert bench.source(f"device.driver == 'a' && {A}.index == 3").count("try:") == 1
    assert bench.source(f"{A}.index == 3 && device.driver == 'a'").count("try:") == 2


def test_a_long_chain_is_flat(bench: Any) -> None:
    text = " && ".join([f"{A}.index == 3"] * 100)
    assert max(len(line) - len(line.lstrip()) for line in bench.source(text).splitlines()) < 8
    bench.check(text)
