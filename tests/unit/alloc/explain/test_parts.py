"""Which part of a selector decides."""

import msgspec
import pytest

from devlet.alloc.device_cel import DeviceInput, device_environment
from devlet.alloc.explain.parts import Missing, Part, deciding_part, shown, terms
from devlet.alloc.selectors import compile_selector
from devlet.cel.program import Program
from devlet.cel.values import NONE, Optional
from devlet.objects.types.slice import Device

GPU = 'device.attributes["gpu.example.com"]'
DEVICE = {
    "name": "gpu-0",
    "attributes": {"model": {"string": "a100"}, "numa": {"int": 1}, "roots": {"strings": ["r1", "r2"]}},
    "capacity": {"memory": {"value": "16Gi"}},
}


def compiled(expression: str) -> Program:
    return compile_selector(expression, device_environment())


def part_of(expression: str) -> Part:
    return deciding_part(compiled(expression), DeviceInput("gpu.example.com", msgspec.convert(DEVICE, Device)))


MEMORY = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'


@pytest.mark.parametrize(
    ("expression", "part", "facts"),
    [
        (f'device.driver == "gpu.example.com" && {MEMORY}', MEMORY, ("memory is 16Gi",)),
        (f'{GPU}.model == "h100" || {GPU}.numa == 0', None, ('model is "a100"', "numa is 1")),
        (f"true && ({GPU}.numa == 0 || false)", f"{GPU}.numa == 0 || false", ("numa is 1",)),
        (f"!({GPU}.numa in [0, 1])", None, ("numa is 1",)),
        (f"!(false || {GPU}.numa == 1)", f"{GPU}.numa == 1", ("numa is 1",)),
        (f'{GPU}.numa == 1 ? {GPU}.model == "x" : true', f'{GPU}.model == "x"', ('model is "a100"',)),
        (f'{GPU}.roots.exists(r, r == "r3")', None, ('roots is ["r1", "r2"]',)),
        (f"cel.bind(a, {GPU}, a.numa == 1 && a.numa > 3)", "a.numa > 3", ("numa is 1",)),
        (f'"uuid" in {GPU}', None, (f"{GPU} has model, numa, roots",)),
        ("false", "false", ()),
    ],
)
def test_the_smallest_part_that_decides_is_found_with_its_values(
    expression: str, part: str | None, facts: tuple[str, ...]
) -> None:
    found = part_of(expression)
    assert (found.text, found.facts) == (part or expression, facts)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (f'{GPU}.type == "gpu"', f"{GPU}.type"),
        (f"has({GPU}.type)", f"has({GPU}.type)"),
        (f'{GPU}.?type.orValue("x") == "gpu"', f"{GPU}.?type"),
        (f'{GPU}["type"].startsWith("g")', f'{GPU}["type"]'),
    ],
)
def test_a_missing_name_is_distinguished(expression: str, text: str) -> None:
    found = part_of(f"{GPU}.numa == 1 && {expression}")
    assert found.text == expression
    assert found.facts == ("type is missing",)
    assert found.missing == (Missing("attributes", "gpu.example.com", "type", text),)


def test_a_failure_beside_a_false_alternative_is_the_failure() -> None:
    assert part_of(f'{GPU}.numa == 7 || {GPU}.type == "gpu"').text == f'{GPU}.type == "gpu"'


def test_terms_are_what_must_all_hold() -> None:
    assert terms(compiled("true && (false || true) && 1 == 1")) == ["true", "false || true", "1 == 1"]
    assert terms(compiled("true || false")) == ["true || false"]


def test_values_are_shown_as_people_write_them() -> None:
    texts = [shown(value) for value in (True, "x", 3, ("a", "b"), Optional(1), NONE)]
    assert texts == ["true", '"x"', "3", '["a", "b"]', "1", "missing"]
    assert len(shown("x" * 1000)) == 120
