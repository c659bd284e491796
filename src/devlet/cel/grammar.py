"""The grammar of CEL as a graph, for messages about syntax errors (`syntax_errors`).

The graph answers which tokens may come next at any point. The parser is hand-written and does not use it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache
from typing import Final

from devlet.cel.lexer import BYTES, EOF, ESC_IDENTIFIER, IDENTIFIER, NUM_FLOAT, NUM_INT, NUM_UINT, STRING

END_OF_RULE: Final = "<EPSILON>"
"""Among the next tokens it means that the rule may end here, so the enclosing rule decides what comes next."""


class Step(Enum):
    TOKEN = auto()
    RULE = auto()
    OPTION = auto()
    LOOP = auto()
    """Before the first iteration."""
    FIRST_ROUND = auto()
    """Before the first iteration of a loop that has at least one."""
    AGAIN = auto()
    """After an iteration."""
    CHOICE = auto()
    END = auto()


@dataclass(eq=False, slots=True)
class Node:
    step: Step
    tokens: frozenset[str] = frozenset()
    rule: str = ""
    binding: int = 0
    """For a rule with operators: how strongly they must bind to belong to it."""
    branches: "list[Node]" = field(default_factory=list)
    next: "Node | None" = None
    decision: str = ""
    """How to choose a branch if one token is not enough."""


_Part = tuple[object, ...]


def _rule(name: str, binding: int = 0) -> _Part:
    return ("rule", name, binding)


def _maybe(*parts: _Part | str) -> _Part:
    return ("maybe", parts)


def _loop(*parts: _Part | str, decision: str = "") -> _Part:
    return ("loop", parts, decision)


def _repeated(*parts: _Part | str, decision: str = "") -> _Part:
    return ("repeated", parts, decision)


def _choice(decision: str, *alternatives: tuple[_Part | str, ...]) -> _Part:
    return ("choice", alternatives, decision)


def _any_of(*tokens: str) -> _Part:
    return ("any of", tokens)


_RULES: Final[dict[str, tuple[_Part | str, ...]]] = {
    "start": (_rule("expr"), EOF),
    "expr": (_rule("or"), _maybe("?", _rule("or"), ":", _rule("expr"))),
    "or": (_rule("and"), _loop("||", _rule("and"))),
    "and": (_rule("relation"), _loop("&&", _rule("relation"))),
    "relation": (
        _rule("calc"),
        _loop(_any_of("<", "<=", ">=", ">", "==", "!=", "in"), _rule("relation", 2), decision="operator"),
    ),
    "calc": (
        _rule("unary"),
        _loop(
            _choice(
                "calculation",
                (_any_of("*", "/", "%"), _rule("calc", 3)),
                (_any_of("+", "-"), _rule("calc", 2)),
            ),
            decision="operator",
        ),
    ),
    "unary": (
        _choice(
            "unary",
            (_rule("member"),),
            (_repeated("!"), _rule("member")),
            (_repeated("-", decision="minus"), _rule("member")),
        ),
    ),
    "member": (
        _rule("primary"),
        _loop(
            _choice(
                "member",
                (".", _maybe("?"), _rule("name")),
                (".", IDENTIFIER, "(", _maybe(_rule("arguments")), ")"),
                ("[", _maybe("?"), _rule("expr"), "]"),
            )
        ),
    ),
    "primary": (
        _choice(
            "primary",
            (_maybe("."), IDENTIFIER),
            (_maybe("."), IDENTIFIER, "(", _maybe(_rule("arguments")), ")"),
            ("(", _rule("expr"), ")"),
            ("[", _maybe(_rule("elements")), _maybe(","), "]"),
            ("{", _maybe(_rule("entries")), _maybe(","), "}"),
            (_maybe("."), IDENTIFIER, _loop(".", IDENTIFIER), "{", _maybe(_rule("fields")), _maybe(","), "}"),
            (_rule("literal"),),
        ),
    ),
    "arguments": (_rule("expr"), _loop(",", _rule("expr"))),
    "elements": (_rule("optional expr"), _loop(",", _rule("optional expr"), decision="comma")),
    "fields": (
        *(_rule("optional name"), ":", _rule("expr")),
        _loop(",", _rule("optional name"), ":", _rule("expr"), decision="comma"),
    ),
    "optional name": (_maybe("?"), _rule("name")),
    "entries": (
        *(_rule("optional expr"), ":", _rule("expr")),
        _loop(",", _rule("optional expr"), ":", _rule("expr"), decision="comma"),
    ),
    "name": (_choice("", (IDENTIFIER,), (ESC_IDENTIFIER,)),),
    "optional expr": (_maybe("?"), _rule("expr")),
    "literal": (
        _choice(
            "literal",
            (_maybe("-"), NUM_INT),
            (NUM_UINT,),
            (_maybe("-"), NUM_FLOAT),
            *((token,) for token in (STRING, BYTES, "true", "false", "null")),
        ),
    ),
}


def _built(parts: Iterable[_Part | str], after: Node) -> Node:
    """Return the first node of a sequence that continues with `after`."""
    first = after
    for part in reversed(tuple(parts)):
        first = _node(part, first)
    return first


def _node(part: _Part | str, after: Node) -> Node:
    match part:
        case str():
            return Node(Step.TOKEN, frozenset((part,)), next=after)
        case ("any of", tuple(tokens)):
            return Node(Step.TOKEN, frozenset(tokens), next=after)
        case ("rule", str(name), int(binding)):
            return Node(Step.RULE, rule=name, binding=binding, next=after)
        case ("maybe", tuple(parts)):
            return Node(Step.OPTION, branches=[_built(parts, after)], next=after)
        case ("choice", tuple(alternatives), str(decision)):
            branches = [_built(parts, after) for parts in alternatives]
            return Node(Step.CHOICE, branches=branches, next=after, decision=decision)
        case (kind, tuple(parts), str(decision)):
            again = Node(Step.AGAIN, next=after, decision=decision)
            again.branches = [_built(parts, again)]
            step = Step.LOOP if kind == "loop" else Step.FIRST_ROUND
            return Node(step, branches=again.branches, next=after, decision=decision)
        case _:
            raise AssertionError(part)


RULES: Final = {name: _built(parts, Node(Step.END)) for name, parts in _RULES.items()}
"""The first node of each rule."""


@cache
def next_tokens(node: Node) -> frozenset[str]:
    """Return the tokens that may come at a node, and END_OF_RULE if the rule may end there."""
    return frozenset(_next_tokens(node))


def _next_tokens(node: Node) -> Iterator[str]:
    match node.step:
        case Step.END:
            yield END_OF_RULE
        case Step.TOKEN:
            yield from node.tokens
        case Step.RULE:
            yield from next_tokens(RULES[node.rule])
        case _:
            for branch in node.branches:
                yield from next_tokens(branch)
            if node.step in (Step.OPTION, Step.LOOP, Step.AGAIN) and node.next:
                yield from next_tokens(node.next)
