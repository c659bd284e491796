"""Random expressions that mostly have the right types: generated code and `evaluate` say the same of every device."""

import json
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.cel.issues import CompileError

VECTORS: Final = Path(__file__).parents[3] / "vectors"

A: Final = 'device.attributes["gpu.example.com"]'
C: Final = 'device.capacity["gpu.example.com"]'

# By type: templates, where {int} is a part of that type, {x:T} a new variable of that type and «» are braces.
GRAMMAR: Final[dict[str, list[str]]] = {
    "bool": [
        "true",
        "false",
        "{bool} && {bool}",
        "{bool} && {bool}",
        "{bool} || {bool}",
        "{bool} || {bool}",
        "!{bool}",
        "{bool} ? {bool} : {bool}",
        "{dyn} == {any}",
        "{any} == {dyn}",
        "{dyn} != {any}",
        "{any} != {dyn}",
        "{int} == {int}",
        "{string} != {string}",
        "{list} == {list}",
        "{quantity} == {quantity}",
        "{dyn} < {int}",
        "{dyn} >= {string}",
        "{int} > {dyn}",
        "{int} <= {int}",
        "{double} < {dyn}",
        "{double} >= {double}",
        "{dyn} > {dyn}",
        "{dyn}",
        "dyn({bool})",
        "has({map}.model)",
        "has({map}.nope)",
        "has({dyn}.x)",
        "has(device.driver)",
        "{string} in {strings}",
        "{dyn} in ['a100', 'h100']",
        "{dyn} in [1, 3]",
        "{dyn} in {list}",
        "{string} in {map}",
        "{int} in {ints}",
        "{quantity}.compareTo({quantity}) >= 0",
        "0 < {quantity}.compareTo({quantity})",
        "{quantity}.isGreaterThan({quantity})",
        "{version}.isLessThan({version})",
        "{dyn}.isGreaterThan({version})",
        "{dyn}.compareTo({version}) == 0",
        "{dyn}.compareTo({version}) <= 0",
        "{dyn}.compareTo({dyn}) <= 0",
        "{string}.startsWith({string})",
        "{dyn}.endsWith({string})",
        "{string}.contains({dyn})",
        "{string}.matches('a+')",
        "{dyn}.matches('^a')",
        "{ints}.all({x:int}, {bool})",
        "{dyn}.exists({x:dyn}, {bool})",
        "{strings}.exists_one({x:string}, {bool})",
        "{dyn}.exists_one({x:dyn}, {bool})",
        "{map}.all({x:string}, {y:dyn}, {bool})",
        "{ints}.exists({x:int}, {y:int}, {bool})",
        "{dyn}.existsOne({x:dyn}, {y:dyn}, {bool})",
        "cel.bind({x:bool}, {bool}, {bool})",
        "cel.bind({x:dyn}, {dyn}, {bool})",
        "cel.bind({x:map}, {map}, {bool})",
        "{optional}.hasValue()",
        "{optional} == {optional}",
        "{optional}.or({optional}).hasValue()",
        "{dyn}[?0].hasValue()",
        "{dyn}[?'x'].orValue(1) == 1",
        "isQuantity({string})",
        "type({any}) == int",
        "sets.contains({ints}, {ints})",
        "{ints}.isSorted()",
        "device.allowMultipleAllocations",
    ],
    "int": [
        "0",
        "1",
        "3",
        "-7",
        "9223372036854775807",
        "{int} + {int}",
        "{int} - {int}",
        "{int} * {int}",
        "{int} / {int}",
        "{int} % {int}",
        "-{int}",
        "{dyn} + {int}",
        "{bool} ? {int} : {int}",
        "size({string})",
        "{list}.size()",
        "size({dyn})",
        "{map}.size()",
        "int({string})",
        "int({dyn})",
        "{ints}[{int}]",
        "{ints}[0]",
        "{quantity}.asInteger()",
        "{version}.major()",
        "{optional}.value()",
        "{optional}.orValue({int})",
        "{string}.indexOf({string})",
        "cel.bind({x:int}, {int}, {int})",
        "{ints}.sum()",
        "{quantity}.compareTo({quantity})",
    ],
    "double": ["0.5", "3.0", "double({int})", "{double} + {double}", "{double} / {double}", "-{double}"],
    "string": [
        "'a100'",
        "''",
        "'b'",
        "device.driver",
        "{string} + {string}",
        "string({int})",
        "string({dyn})",
        "{string}.upperAscii()",
        "{dyn}.lowerAscii()",
        "{string}.substring({int})",
        "{string}.replace({string}, 'x')",
        "{bool} ? {string} : {string}",
        "{strings}[{int}]",
        "{strings}.join('-')",
        "'%s'.format([{any}])",
        "{map}.?model.orValue('none')",
    ],
    "strings": [
        "['a', 'b']",
        "[{string}]",
        "[{string}, {string}]",
        "{string}.split(',')",
        "{strings}.filter({x:string}, {bool})",
        "{strings}.map({x:string}, {string})",
        "{strings} + {strings}",
        "{map}.map({x:string}, {bool}, {x})",
    ],
    "ints": [
        "[1, 2, 3]",
        "[]",
        "[{int}]",
        "[{int}, {int}]",
        "{ints}.map({x:int}, {int})",
        "{ints}.filter({x:int}, {bool})",
        "{ints}.map({x:int}, {bool}, {int})",
        "{list}.transformList({x:int}, {y:dyn}, {int})",
        "{ints}.transformList({x:int}, {y:int}, {bool}, {int})",
        "{ints} + {ints}",
        "[?{optional}, {int}]",
        "{ints}.distinct()",
        "{ints}.sort()",
        "{ints}.sortBy({x:int}, {int})",
        "{ints}.slice(0, {int})",
        "lists.range(3)",
    ],
    "list": ["{ints}", "{strings}", "[{dyn}]", "[dyn({any}), {dyn}]", "dyn({any})"],
    "map": [
        A,
        "device.attributes[{string}]",
        "device.attributes[device.driver]",
        "«'model': {dyn}, 'x': dyn({any})»",
        "«{string}: {dyn}»",
        "{map}.transformMap({x:string}, {y:dyn}, {dyn})",
        "«?'model': {optional}»",
        "{map}.transformMap({x:string}, {y:dyn}, {bool}, {dyn})",
        "{map}.transformMapEntry({x:string}, {y:dyn}, «{x}: {y}»)",
        "{bool} ? {map} : {map}",
    ],
    "dyn": [
        f"{A}.model",
        f"{A}.model",
        f"{A}.index",
        f"{A}.index",
        f"{A}.mig",
        f"{A}.version",
        f"{A}.tags",
        f"{A}.nope",
        "{map}.model",
        "{map}[{string}]",
        "dyn({any})",
        "{dyn}.x",
        "{dyn}[0]",
        "{dyn}[{int}]",
        "{dyn}['a']",
        "{bool} ? {dyn} : {dyn}",
        "dyn({map})",
        "dyn(null)",
        f"{A}.tags.map({{x:dyn}}, {{dyn}})",
        f"{A}.tags.filter({{x:dyn}}, {{bool}})",
        "{map}.?index.orValue({dyn})",
        "cel.bind({x:dyn}, {dyn}, {dyn})",
        "{dyn}.?x.orValue({any})",
    ],
    "quantity": [
        f"{C}.memory",
        f"{C}.cores",
        f"{C}[{{string}}]",
        "quantity('40Gi')",
        "quantity('x')",
        "quantity({string})",
        "{quantity}.add({quantity})",
        "{quantity}.sub({int})",
        f"{C}.?memory.orValue(quantity('1'))",
        "({bool} ? {quantity} : null)",
    ],
    "version": ["semver('1.2.0')", "semver('1.x')", "semver({string})"],
    "optional": [
        "optional.of({int})",
        "optional.none()",
        "optional.ofNonZeroValue({int})",
        "{map}.?index",
        "{map}[?{string}]",
        "{optional}.or({optional})",
        "{ints}[?{int}]",
        "{ints}.first()",
        "{optional}.optMap({x:int}, {int})",
        "{optional}.optFlatMap({x:int}, {optional})",
        "{map}.?tags[?0]",
        "{map}.?tags[0]",
        "{map}.?a.b",
        "{bool} ? {optional} : {optional}",
    ],
    "any": [
        "{int}",
        "{string}",
        "{bool}",
        "{double}",
        "{dyn}",
        "{list}",
        "{version}",
        "{quantity}",
        "{map}",
        "{optional}",
        "null",
        "1u",
    ],
}

_SHORT: Final = {
    "bool": "true",
    "int": "1",
    "double": "0.5",
    "string": "'a'",
    "strings": "['a']",
    "ints": "[1, 2]",
    "list": "[1]",
    "map": A,
    "dyn": f"{A}.index",
    "quantity": f"{C}.memory",
    "version": "semver('1.2.0')",
    "optional": "optional.of(1)",
    "any": "3",
}


class Writer:
    """Writes an expression, `size` parts long or somewhat longer."""

    def __init__(self, random: Random, size: int) -> None:
        self._random = random
        self._left = size
        self._scope: list[tuple[str, str]] = []

    def write(self, kind: str) -> str:
        self._left -= 1
        variables = [name for name, its in self._scope if its == kind]
        if variables and self._random.random() < 0.5:
            return self._random.choice(variables)
        if self._left <= 0:
            return _SHORT[kind]
        return f"({self._filled(self._random.choice(GRAMMAR[kind]))})"

    def _filled(self, template: str) -> str:
        before, local = len(self._scope), {}
        pieces = template.split("{")
        text = pieces[0]
        for piece in pieces[1:]:
            hole, rest = piece.split("}", 1)
            name, _, kind = hole.partition(":")
            if kind:
                local[name] = self._random.choice(("x", "y", "self", "class", "_"))
                self._scope.append((local[name], kind))
                text += local[name]
            else:
                text += local.get(name) or self.write(name)
            text += rest
        del self._scope[before:]
        return text.replace("«", "{").replace("»", "}")


def check_if_it_compiles(bench: Any, text: str) -> bool:
    try:
        bench.compiled(text)
    except CompileError:
        return False
    bench.check(text)
    return True


@settings(max_examples=settings().max_examples * 3 // 2, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(sorted(GRAMMAR)), st.integers(2, 40))
def test_a_random_expression_means_the_same_generated_and_evaluated(
    bench: Any, random: Random, kind: str, size: int
) -> None:
    check_if_it_compiles(bench, Writer(random, size).write(kind))


def test_most_random_expressions_compile(bench: Any) -> None:
    compiled = [check_if_it_compiles(bench, Writer(Random(seed), 12).write("bool")) for seed in range(60)]
    assert sum(compiled) > 30


def _expressions() -> set[str]:
    found: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict) and isinstance(value.get("expression"), str):
            found.add(value["expression"])
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            collect(part)

    for path in VECTORS.glob("cel_*.json"):
        collect(json.loads(path.read_text()))
    for path in VECTORS.glob("cel_*.jsonl"):
        collect([json.loads(line) for line in path.read_text().splitlines()])
    return found


PARTS: Final = 8


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))])
def test_every_expression_of_the_vectors_means_the_same_generated_and_evaluated(bench: Any, part: int) -> None:
    texts = [text for text in sorted(_expressions()) if "range(2000000)" not in text][part::PARTS]
    assert sum(check_if_it_compiles(bench, text) for text in texts) > 100
