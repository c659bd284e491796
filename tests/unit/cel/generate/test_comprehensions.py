from typing import Any

import pytest

A = 'device.attributes["gpu.example.com"]'

EXPRESSIONS = [
    "[1, 2, 3].all(x, x > size(device.driver))",
    f"{A}.tags.all(t, t == 'a')",
    f"{A}.tags.exists(t, t == 'b')",
    f"[0, 1, 2].all(x, {A}.tags[x] == 'a')",
    f"[5, 1, 0].exists(x, {A}.tags[x] == 'a')",
    f"['nope', 'model'].all(x, {A}[x] == 'z')",
    f"['nope', 'nada'].exists(x, {A}[x] == 'z')",
    f"['nope', 'model'].exists(x, {A}.nope == x || {A}.model == x)",
    f"{A}.tags.exists_one(t, t == 'a')",
    f"['nope', 'nada'].exists_one(x, {A}[x] == 'z')",
    f"[1, 2].exists_one(x, x == 1 ? {A}.nope : {A}.nada)",
    f"[1, 2].filter(x, x == 1 ? {A}.nope : {A}.nada)",
    f"[1, 2].map(x, x == 1 ? {A}.nope : {A}.nada)",
    f"{A}.map(k, k)",
    f"{A}.tags.map(t, t + 'x')",
    f"{A}.tags.filter(t, t != 'a')",
    f"{A}.tags.map(t, t != 'a', [t])",
    "device.attributes.all(d, d == device.driver)",
    f"{A}.all(k, v, k != 'x' && v != 'y')",
    f"{A}.tags.exists(i, t, i == 1 && t == 'b')",
    f"{A}.existsOne(k, v, v == 3)",
    f"{A}.tags.transformList(i, t, t)",
    f"{A}.transformMap(k, v, k == 'model', v)",
    f"{A}.transformMapEntry(k, v, {{string(v): k}})",
    "[1, 2].transformMapEntry(i, v, {'same': v})",
    f"[{A}.index].sortBy(x, x)",
    f"cel.bind(a, {A}, a.mig && a.index == 3)",
    f"cel.bind(a, {A}.nope, a || true)",
    f"cel.bind(a, {A}.nope, true)",
    f"cel.bind(a, {A}.index, cel.bind(a, a, a == 3))",
    f"cel.bind(a, {A}.?model, a.hasValue() && a.value() == 'a100')",
    "[1, 2].all(x, [x].all(x, x > 0))",
    f"[{A}.tags].map(x, x.map(y, [x, dyn(y)]))",
    f"[1, 2].map(x, [{A}.nope].distinct())",
    f"[1, 2].filter(x, {A}.version in ['a'] || {A}.nope)",
    f"{A}.model.all(x, true)",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_macros_mean_the_same_generated_and_evaluated(bench: Any, text: str) -> None:
    assert bench.source(text)
    bench.check(text)


def test_a_variable_that_fails_and_is_not_used_does_not_matter(bench: Any) -> None:
    assert set(bench.check(f"cel.bind(a, {A}.nope, true)")) == {True}


def test_all_stops_at_the_first_element_that_decides(bench: Any) -> None:
    assert "break" in bench.source("[1, 2].all(x, x > size(device.driver))")


def test_loops_deeper_than_python_allows_become_functions(bench: Any) -> None:
    text = "".join(f"[{i}].all(x{i}, " for i in range(30)) + f"{A}.index == x0 || x29 == 29" + ")" * 30
    assert "def f" in bench.source(text)
    assert set(bench.check(text)) == {True}
