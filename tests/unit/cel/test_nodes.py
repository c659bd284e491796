import pytest

from devlet.cel.ast import Call, Comprehension, Ident, Literal
from devlet.cel.issues import CompileError
from devlet.cel.nodes import LARGEST, Nodes

TEXT = "xs.all(x, true)"


def made(nodes: Nodes, name: str) -> Ident:
    return Ident(nodes.new(0, (0, len(name))), name)


def test_a_node_is_higher_than_its_children_only_if_it_is_deeper() -> None:
    nodes = Nodes("a + b", frozenset())
    a, b = made(nodes, "a"), made(nodes, "b")
    flat = Literal(nodes.new(0, (0, 5), (a, b)), None)
    deep = Literal(nodes.new(2, (0, 5), (flat, b), deeper=True), None)
    assert [nodes.heights[node.id] for node in (a, flat, deep)] == [0, 0, 1]
    assert (nodes.positions[deep.id], nodes.spans[deep.id]) == (2, (0, 5))


def test_a_macro_is_expanded_and_its_call_remembered() -> None:
    nodes = Nodes(TEXT, frozenset(["all"]))
    target, args = made(nodes, "xs"), (made(nodes, "x"), made(nodes, "p"))
    id = nodes.new(6, (0, len(TEXT)), (target, *args), deeper=True)
    expansion = nodes.call(id, "all", target, args)
    assert isinstance(expansion, Comprehension)
    assert nodes.macro_calls == {expansion.id: Call(0, "all", target, args)}
    assert nodes.spans[expansion.id] == (0, len(TEXT))
    assert nodes.positions[expansion.id] == 6
    assert nodes.heights[expansion.id] == 1


def test_a_name_that_is_not_a_macro_is_called() -> None:
    nodes = Nodes(TEXT, frozenset())
    target = made(nodes, "xs")
    id = nodes.new(6, (0, len(TEXT)), (target,))
    assert nodes.call(id, "all", target, ()) == Call(id, "all", target, ())
    assert nodes.macro_calls == {}


def test_the_error_of_a_macro_is_a_problem_at_its_argument() -> None:
    nodes = Nodes(TEXT, frozenset(["all"]))
    target = made(nodes, "xs")
    wrong = Literal(nodes.new(7, (7, 8)), 1)
    id = nodes.new(6, (0, len(TEXT)), (target, wrong, wrong))
    replacement = nodes.call(id, "all", target, (wrong, wrong))
    assert [(issue.message, issue.offset) for issue in nodes.issues] == [("argument must be a simple name", 7)]
    assert replacement == Literal(replacement.id, None)
    assert nodes.spans[replacement.id] == (7, len(TEXT))


def test_expansions_are_limited() -> None:
    nodes = Nodes(TEXT, frozenset(["all"]))
    target, args = made(nodes, "xs"), (made(nodes, "x"), made(nodes, "p"))
    id = nodes.new(6, (0, len(TEXT)))
    with pytest.raises(CompileError, match=f"its macros expand to more than {LARGEST} nodes"):
        for _ in range(LARGEST):
            nodes.call(id, "all", target, args)
