from typing import Any

import pytest

from devlet.alloc.device_cel import DeviceInput, device_environment
from devlet.cel.program import compile
from devlet.cel.types import INT
from devlet.cel.values import NONE, CelError, Duration, Optional, Timestamp, Uint
from devlet.cli.views.cel_tree import documents, lines, value_text
from devlet.objects.documents import view
from devlet.objects.types.slice import Device
from devlet.objects.values.quantity import Quantity
from devlet.objects.values.semver import parse

D = 'device.attributes["gpu.example.com"]'
DEVICE = DeviceInput("gpu.example.com", view(Device, {"attributes": {"n": {"int": 3}, "s": {"string": "abc"}}}))


def tree(expression: str) -> list[str]:
    program = compile(expression, device_environment())
    evaluation = program.evaluate({"device": DEVICE}, trace=True)
    return list(lines(program.checked, evaluation.trace))


def test_parts_are_below_the_whole_and_the_way_to_an_attribute_is_one_part() -> None:
    assert tree(f'{D}.n > 2 && {D}["s"] == "abc"') == [
        f'{D}.n > 2 && {D}["s"] == "abc" = true',
        f"  {D}.n > 2 = true",
        f"    {D}.n = 3",
        f'  {D}["s"] == "abc" = true',
        f'    {D}["s"] = "abc"',
    ]


def test_nothing_is_below_what_was_not_evaluated() -> None:
    assert tree(f"{D}.n > 5 && {D}.s.size() == 3")[-1] == f"  {D}.s.size() == 3 = not evaluated"


def test_an_error_is_shown_where_it_comes_from() -> None:
    assert tree(f"{D}.lost == 1")[1] == f"  {D}.lost = error: no such key: lost"


def test_macros_are_shown_as_they_are_written_with_their_last_step() -> None:
    assert tree("[1, 2].all(x, x < 2)") == ["[1, 2].all(x, x < 2) = false", "  x < 2 = false", "    x = 2"]
    assert tree(f"has({D}.n)") == [f"has({D}.n) = true"]
    assert tree("cel.bind(a, 1 + 1, a == 2)") == [
        "cel.bind(a, 1 + 1, a == 2) = true",
        "  1 + 1 = 2",
        "  a == 2 = true",
        "    a = 2",
    ]
    assert tree("[1].map(x, x > 0, x * 2) == [2]")[1:] == [
        "  [1].map(x, x > 0, x * 2) = [2]",
        "    x > 0 = true",
        "      x = 1",
        "    x * 2 = 2",
        "      x = 1",
    ]
    assert tree("[1].exists(i, x, i == 0)")[1:] == ["  i == 0 = true", "    i = 0"]


def test_what_fields_are_looked_up_in_is_a_part() -> None:
    assert tree('{"a": 1 + 1}.a == 2')[1:] == ['  {"a": 1 + 1}.a = 2', '    {"a": 1 + 1} = {"a": 2}', "      1 + 1 = 2"]


def test_long_texts_are_cut_and_deep_trees_end() -> None:
    assert all(len(line) < 250 for line in tree(" && ".join([f"{D}.n > 2"] * 50)))
    assert len(tree("!(" * 100 + "true" + ")" * 100)) <= 21


def test_documents_have_depth_and_column() -> None:
    program = compile(f"true && {D}.n > 2", device_environment())
    found = documents(program.checked, program.evaluate({"device": DEVICE}, trace=True).trace)
    assert [(part["depth"], part["column"], part["value"]) for part in found] == [
        (0, 1, "true"),
        (1, 9, "true"),
        (2, 9, "3"),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (7, "7"),
        (Uint(7), "7u"),
        (1.5, "1.5"),
        ('a"b', '"a\\"b"'),
        (b"ab", 'b"ab"'),
        ([1, "a"], '[1, "a"]'),
        ({"a": [1]}, '{"a": [1]}'),
        ([[[[1]]]], "[[[…]]]"),
        (NONE, "optional.none()"),
        (Optional(1), "optional.of(1)"),
        (INT, "int"),
        (Quantity.parse("1Gi"), 'quantity("1Gi")'),
        (parse("1.2.3"), 'semver("1.2.3")'),
        (Duration(90 * 10**9), "duration(90s)"),
        (Timestamp(10**9), "timestamp(1)"),
        (DEVICE, "the device"),
        (CelError("no such key: a"), "error: no such key: a"),
        ("x" * 100, '"' + "x" * 58 + "…"),
    ],
)
def test_values_are_written_as_in_an_expression(value: Any, text: str) -> None:
    assert value_text(value) == text
