import pytest

from devlet.cel.ast import Call, Comprehension, Expr, Ident, ListLiteral, Literal, MapLiteral, Select
from devlet.cel.issues import CompileError
from devlet.cel.macros import ALL, BINDINGS, LISTS, OPTIONALS, STANDARD, TWO_VARIABLES, by_signature
from devlet.cel.parser import parse


def shape(node: Expr) -> str:
    """The tree in one line; a loop is `for variables in range: accumulator = init; while condition: step; result`."""
    match node:
        case Literal():
            return repr(node.value)
        case Ident():
            return node.name
        case Select():
            return f"{shape(node.operand)}.{node.field}{'~' if node.is_test else ''}"
        case ListLiteral():
            return f"[{', '.join(map(shape, node.elements))}]"
        case MapLiteral():
            return "{" + ", ".join(f"{shape(e.key)}: {shape(e.value)}" for e in node.entries) + "}"
        case Call():
            target = f"{shape(node.target)}." if node.target else ""
            return f"{target}{node.function}({', '.join(map(shape, node.args))})"
        case Comprehension():
            names = ", ".join(filter(None, (node.variable, node.variable2)))
            start = f"for {names} in {shape(node.range)}: {node.accumulator} = {shape(node.init)}"
            return f"<{start}; while {shape(node.condition)}: {shape(node.step)}; {shape(node.result)}>"
    raise AssertionError(node)


ACC = "@result"


@pytest.mark.spec("DA-4.3p")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("has(a.b.c)", "a.b.c~"),
        (
            "a.all(x, p)",
            f"<for x in a: {ACC} = True; while @not_strictly_false({ACC}): _&&_({ACC}, p); {ACC}>",
        ),
        (
            "a.exists(x, p)",
            f"<for x in a: {ACC} = False; while @not_strictly_false(!_({ACC})): _||_({ACC}, p); {ACC}>",
        ),
        (
            "a.exists_one(x, p)",
            f"<for x in a: {ACC} = 0; while True: _?_:_(p, _+_({ACC}, 1), {ACC}); _==_({ACC}, 1)>",
        ),
        ("a.map(x, f)", f"<for x in a: {ACC} = []; while True: _+_({ACC}, [f]); {ACC}>"),
        ("a.map(x, p, f)", f"<for x in a: {ACC} = []; while True: _?_:_(p, _+_({ACC}, [f]), {ACC}); {ACC}>"),
        ("a.filter(x, p)", f"<for x in a: {ACC} = []; while True: _?_:_(p, _+_({ACC}, [x]), {ACC}); {ACC}>"),
        ("cel.bind(v, i, r)", "<for #unused in []: v = i; while False: v; r>"),
        (
            "a.optMap(v, f)",
            "_?_:_(a.hasValue(), optional.of(<for #unused in []: v = a.value(); while False: v; f>), optional.none())",
        ),
        (
            "a.optFlatMap(v, f)",
            "_?_:_(a.hasValue(), <for #unused in []: v = a.value(); while False: v; f>, optional.none())",
        ),
        (
            "a.all(i, v, p)",
            f"<for i, v in a: {ACC} = True; while @not_strictly_false({ACC}): _&&_({ACC}, p); {ACC}>",
        ),
        (
            "a.exists(i, v, p)",
            f"<for i, v in a: {ACC} = False; while @not_strictly_false(!_({ACC})): _||_({ACC}, p); {ACC}>",
        ),
        (
            "a.existsOne(i, v, p)",
            f"<for i, v in a: {ACC} = 0; while True: _?_:_(p, _+_({ACC}, 1), {ACC}); _==_({ACC}, 1)>",
        ),
        (
            "a.exists_one(i, v, p)",
            f"<for i, v in a: {ACC} = 0; while True: _?_:_(p, _+_({ACC}, 1), {ACC}); _==_({ACC}, 1)>",
        ),
        ("a.transformList(i, v, f)", f"<for i, v in a: {ACC} = []; while True: _+_({ACC}, [f]); {ACC}>"),
        (
            "a.transformList(i, v, p, f)",
            f"<for i, v in a: {ACC} = []; while True: _?_:_(p, _+_({ACC}, [f]), {ACC}); {ACC}>",
        ),
        (
            "a.transformMap(k, v, f)",
            f"<for k, v in a: {ACC} = {{}}; while True: cel.@mapInsert({ACC}, k, f); {ACC}>",
        ),
        (
            "a.transformMap(k, v, p, f)",
            f"<for k, v in a: {ACC} = {{}}; while True: _?_:_(p, cel.@mapInsert({ACC}, k, f), {ACC}); {ACC}>",
        ),
        (
            "a.transformMapEntry(k, v, e)",
            f"<for k, v in a: {ACC} = {{}}; while True: cel.@mapInsert({ACC}, e); {ACC}>",
        ),
        (
            "a.sortBy(x, f)",
            "<for #unused in []: @__sortBy_input__ = a; while False: @__sortBy_input__; "
            "@__sortBy_input__.@sortByAssociatedKeys("
            f"<for x in @__sortBy_input__: {ACC} = []; while True: _+_({ACC}, [f]); {ACC}>)>",
        ),
        (
            "a.transformMapEntry(k, v, p, e)",
            f"<for k, v in a: {ACC} = {{}}; while True: _?_:_(p, cel.@mapInsert({ACC}, e), {ACC}); {ACC}>",
        ),
    ],
)
def test_a_macro_becomes_what_costs_are_counted_on(text: str, expected: str) -> None:
    assert shape(parse(text).root) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.existsOne(x, p)", "a.existsOne(x, p)"),
        ("a.all(x)", "a.all(x)"),
        ("all(x, p)", "all(x, p)"),
        ("a.has(b.c)", "a.has(b.c)"),
        (".has(a.b)", ".has(a.b)"),
        ("other.bind(v, i, r)", "other.bind(v, i, r)"),
        ("bind(v, i, r)", "bind(v, i, r)"),
    ],
)
def test_what_only_looks_like_a_macro_is_a_call(text: str, expected: str) -> None:
    assert shape(parse(text).root) == expected


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("has(a)", 5, "invalid argument to has() macro"),
        ("has(a[0])", 6, "invalid argument to has() macro"),
        ("a.all(1, p)", 7, "argument must be a simple name"),
        ("a.exists(b.c, p)", 11, "argument must be a simple name"),
        ("a.map(1, p)", 7, "argument is not an identifier"),
        ("a.filter('x', p)", 10, "argument is not an identifier"),
        ("a.all(__result__, p)", 7, "iteration variable overwrites accumulator variable"),
        ("a.map(__result__, p)", 7, "iteration variable overwrites accumulator variable"),
        ("a.all(i, i, p)", 10, "duplicate variable name: i"),
        ("a.all(i, 2, p)", 10, "argument must be a simple name"),
        ("a.all(i, __result__, p)", 10, "iteration variable overwrites accumulator variable"),
        ("cel.bind(1, 2, 3)", 10, "cel.bind() variable names must be simple identifiers"),
        (
            "1.sortBy(x, x)",
            1,
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        ),
        ("a.optMap(1, v)", 10, "optMap() variable name must be a simple identifier"),
        ("a.optFlatMap(1, v)", 14, "optFlatMap() variable name must be a simple identifier"),
    ],
)
def test_arguments_that_do_not_fit_are_pointed_at(text: str, column: int, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse(text)
    assert [(issue.offset + 1, issue.message) for issue in caught.value.issues] == [(column, message)]


def test_the_copy_of_a_target_has_ids_of_its_own() -> None:
    parsed = parse('{"a": [1], ?"b": T{f: g(x).y}}.optMap(v, v)')
    assert isinstance(parsed.root, Call)
    ids: list[int] = []
    _collect(parsed.root, ids)
    assert len(ids) == len(set(ids))


def _collect(node: object, ids: list[int]) -> None:
    """The id of every node below, once per place it is used in."""
    for name in getattr(node, "__dataclass_fields__", ()):
        value = getattr(node, name)
        if name == "id":
            ids.append(value)
        for item in value if isinstance(value, tuple) else (value,):
            _collect(item, ids)


def test_environments_choose_their_macros_by_name() -> None:
    assert shape(parse("a.all(x, p)", macros=()).root) == "a.all(x, p)"
    assert shape(parse("a.all(i, v, p)", macros=STANDARD).root) == "a.all(i, v, p)"
    assert shape(parse("cel.bind(v, i, r)", macros=STANDARD | OPTIONALS | TWO_VARIABLES).root) == "cel.bind(v, i, r)"
    assert set(by_signature(BINDINGS)) == {("bind", 3, True)}


def test_every_macro_belongs_to_one_library() -> None:
    libraries = (STANDARD, OPTIONALS, BINDINGS, TWO_VARIABLES, LISTS)
    assert len(ALL) == sum(map(len, libraries))
    assert {macro.name for macro in by_signature(ALL).values()} == ALL
