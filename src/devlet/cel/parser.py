"""Parse text to a tree and expand macros on the way.

As in the reference, chains of `&&` and `||` become balanced trees, so the order of evaluation differs from Python's;
`-1` is a literal but `-x` a call; and parentheses leave no node.
"""

import re
from collections.abc import Callable, Collection
from typing import Final

from devlet.cel import lexer
from devlet.cel.ast import (
    Call,
    Entry,
    Expr,
    Field,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Parsed,
    Select,
    Source,
    StructLiteral,
)
from devlet.cel.issues import NOWHERE, CompileError, Issue
from devlet.cel.lexer import EOF, ESC_IDENTIFIER, IDENTIFIER, NUM_FLOAT, NUM_INT, Token
from devlet.cel.literals import literal_value
from devlet.cel.macros import ALL
from devlet.cel.nodes import Nodes
from devlet.cel.recursion import with_room
from devlet.cel.syntax_errors import syntax_errors

LONGEST: Final = 100_000
"""The limit on code points in an expression."""

DEEPEST: Final = 250
"""The limit on levels of nesting of each kind."""

_MOST: Final = 100
"""The limit on syntax errors in one expression."""

RESERVED: Final = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop"),
        *("package", "namespace", "null", "return", "true", "var", "void", "while"),
    )
)
_RELATIONS: Final = {op: f"_{op}_" for op in ("<", "<=", ">=", ">", "==", "!=")} | {"in": "@in"}
_CALCULATIONS: Final = {"*": 2, "/": 2, "%": 2, "+": 1, "-": 1}
_NUMBERS: Final = (NUM_INT, NUM_FLOAT)
_LITERALS: Final = (*_NUMBERS, lexer.NUM_UINT, lexer.STRING, lexer.BYTES, "true", "false", "null")
_SURROGATES = re.compile("[\ud800-\udfff]")


@with_room
def parse(text: str, macros: Collection[str] = ALL) -> Parsed:
    """Parse an expression. Raises CompileError. Without the macro `optMap` the syntax of optionals is not supported
    either."""
    text = _SURROGATES.sub("\ufffd", text)
    if len(text) > LONGEST:
        message = f"expression code point size exceeds limit: size: {len(text)}, limit {LONGEST}"
        raise CompileError(text, [Issue(message)])
    return _Parser(text, frozenset(macros)).parse()


def _capped(issues: list[Issue]) -> list[Issue]:
    if len(issues) <= _MOST:
        return issues
    return [*issues[:_MOST], Issue(f"Syntax error: More than {_MOST} syntax errors", issues[_MOST].offset)]


class _NotAnExpression(Exception):
    """The parser stops here. `syntax_errors` finds the reference's message."""

    def __init__(self, offset: int) -> None:
        super().__init__()
        self.issue = Issue("Syntax error: not an expression", offset)


class _Parser:
    def __init__(self, text: str, macros: frozenset[str]) -> None:
        self._text = text
        self._has_optionals = "optMap" in macros
        self._read = lexer.tokenize(text)
        self._tokens = self._read.tokens
        self._nodes = Nodes(text, macros)
        self._at = 0
        self._open = {"expr": 0, "relation": 0, "calc": 0}

    def parse(self) -> Parsed:
        nodes, broken = self._nodes, self._read.issues
        try:
            root = self._expr()
            self._expect(EOF)
        except _NotAnExpression as e:
            found = [*broken, *(syntax_errors(self._read, DEEPEST) or [e.issue])]
            raise CompileError(self._text, [*nodes.issues, *_capped(found)]) from None
        issues = [Issue("max recursion depth exceeded")] if nodes.heights[root.id] > DEEPEST else nodes.issues
        if broken or issues:
            raise CompileError(self._text, [*issues, *_capped(broken)])
        return Parsed(root, Source(self._text, nodes.positions, nodes.spans), nodes.macro_calls)

    # Tokens

    @property
    def _kind(self) -> str:
        return self._tokens[self._at].kind

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _take_if(self, kind: str) -> Token | None:
        return self._take() if self._kind == kind else None

    def _expect(self, *kinds: str) -> Token:
        if self._kind in kinds:
            return self._take()
        raise _NotAnExpression(self._tokens[self._at].start)

    # Nodes

    def _new(self, offset: int, start: int, *children: Expr, deeper: bool = False) -> int:
        """Return an id for a node that is shown at `offset` and reaches from `start` to the last token read."""
        return self._nodes.new(offset, (start, self._tokens[self._at - 1].end), children, deeper=deeper)

    def _problem(self, message: str, offset: int) -> Expr:
        return self._nodes.problem(message, offset, self._tokens[self._at - 1].end)

    def _call(self, token: Token, start: int, function: str, *args: Expr, deeper: bool = True) -> Expr:
        return Call(self._new(token.start, start, *args, deeper=deeper), function, None, args)

    def _enter(self, rule: str) -> None:
        self._open[rule] += 1
        if self._open[rule] > DEEPEST:
            raise _NotAnExpression(NOWHERE)

    # Grammar

    def _expr(self) -> Expr:
        self._enter("expr")
        start = self._tokens[self._at].start
        node = self._chain("||", lambda: self._chain("&&", self._relation))
        if question := self._take_if("?"):
            then = self._chain("||", lambda: self._chain("&&", self._relation))
            self._expect(":")
            otherwise = self._expr()
            node = self._call(question, start, "_?_:_", node, then, otherwise)
        self._open["expr"] -= 1
        return node

    def _chain(self, op: str, operand: Callable[[], Expr]) -> Expr:
        start = self._tokens[self._at].start
        terms = [operand()]
        ops: list[Token] = []
        bounds = [(start, self._tokens[self._at - 1].end)]
        while self._kind == op:
            ops.append(self._take())
            start = self._tokens[self._at].start
            terms.append(operand())
            bounds.append((start, self._tokens[self._at - 1].end))
        return self._balanced(op, terms, ops, bounds)

    def _balanced(self, op: str, terms: list[Expr], ops: list[Token], bounds: list[tuple[int, int]]) -> Expr:
        if not ops:
            return terms[0]
        middle = len(ops) // 2
        left = self._balanced(op, terms[: middle + 1], ops[:middle], bounds[: middle + 1])
        right = self._balanced(op, terms[middle + 1 :], ops[middle + 1 :], bounds[middle + 1 :])
        node = self._call(ops[middle], bounds[0][0], f"_{op}_", left, right, deeper=False)
        self._nodes.spans[node.id] = (bounds[0][0], bounds[-1][1])
        return node

    def _relation(self, nested: bool = False) -> Expr:
        self._enter("relation")
        start = self._tokens[self._at].start
        node = self._calc(1)
        while not nested and self._kind in _RELATIONS:
            op = self._take()
            node = self._call(op, start, _RELATIONS[op.kind], node, self._relation(nested=True))
        self._open["relation"] -= 1
        return node

    def _calc(self, binding: int) -> Expr:
        self._enter("calc")
        start = self._tokens[self._at].start
        node = self._unary()
        while (strength := _CALCULATIONS.get(self._kind, 0)) >= binding:
            op = self._take()
            node = self._call(op, start, f"_{op.kind}_", node, self._calc(strength + 1))
        self._open["calc"] -= 1
        return node

    def _unary(self) -> Expr:
        op = self._tokens[self._at]
        if op.kind not in ("!", "-") or self._is_negative_number():
            return self._member()
        count = 0
        while self._take_if(op.kind):
            count += 1
        node = self._member()
        return self._call(op, op.start, f"{op.kind}_", node, deeper=False) if count % 2 else node

    def _is_negative_number(self) -> bool:
        return self._kind == "-" and self._tokens[self._at + 1].kind in _NUMBERS

    def _member(self) -> Expr:
        start = self._tokens[self._at].start
        node = self._primary()
        while True:
            if dot := self._take_if("."):
                node = self._selected(node, dot, start)
            elif bracket := self._take_if("["):
                node = self._indexed(node, bracket, start)
            else:
                return node

    def _selected(self, operand: Expr, dot: Token, start: int) -> Expr:
        question = self._take_if("?")
        token = self._expect(IDENTIFIER, ESC_IDENTIFIER)
        if token.kind == IDENTIFIER and not question and self._kind == "(":
            return self._arguments_of(token.text, operand, start)
        name = token.text
        if token.kind == ESC_IDENTIFIER:
            self._problem("unsupported syntax: '`'", token.start)
            name = ""
        if not question:
            return Select(self._new(dot.start, start, operand, deeper=True), operand, name)
        if not self._has_optionals:
            return self._problem("unsupported syntax '.?'", dot.start)
        return self._call(dot, start, "_?._", operand, Literal(self._new(token.start, token.start), name))

    def _indexed(self, operand: Expr, bracket: Token, start: int) -> Expr:
        question = self._take_if("?")
        index = self._expr()
        self._expect("]")
        if question and not self._has_optionals:
            return self._problem("unsupported syntax '[?'", bracket.start)
        return self._call(bracket, start, "_[?_]" if question else "_[_]", operand, index)

    def _arguments_of(self, function: str, target: Expr | None, start: int) -> Expr:
        bracket = self._expect("(")
        args = () if self._kind == ")" else self._several(self._expr)
        self._expect(")")
        children = args if target is None else (target, *args)
        id = self._new(bracket.start, start, *children, deeper=target is not None)
        return self._nodes.call(id, function, target, args)

    def _several(self, item: Callable[[], Expr]) -> tuple[Expr, ...]:
        items = [item()]
        while self._take_if(","):
            items.append(item())
        return tuple(items)

    def _primary(self) -> Expr:
        match self._kind:
            case "(":
                self._take()
                node = self._expr()
                self._expect(")")
                return node
            case "[":
                return self._list()
            case "{":
                return self._map()
            case "." | lexer.IDENTIFIER:
                return self._named()
            case _:
                return self._literal()

    def _named(self) -> Expr:
        first = self._tokens[self._at]
        dot = self._take_if(".")
        if self._is_struct():
            return self._struct(first)
        token = self._expect(IDENTIFIER)
        name = f".{token.text}" if dot else token.text
        if token.text not in RESERVED:
            if self._kind == "(":
                return self._arguments_of(name, None, first.start)
            return Ident(self._new(token.start, first.start), name)
        known = len(self._nodes.issues)
        if self._kind == "(":
            self._arguments_of(name, None, first.start)
        del self._nodes.issues[known:]
        return self._problem(f"reserved identifier: {token.text}", first.start)

    def _is_struct(self) -> bool:
        at = self._at
        while self._tokens[at].kind == IDENTIFIER:
            following = self._tokens[at + 1].kind
            if following == "{":
                return True
            if following != ".":
                return False
            at += 2
        return False

    def _list(self) -> Expr:
        bracket = self._take()
        optionals: list[int] = []
        elements: list[Expr] = []
        while self._kind not in ("]", ","):
            if question := self._take_if("?"):
                optionals.append(len(elements))
                self._check_optional(question)
            elements.append(self._expr())
            if not self._take_if(","):
                break
        else:
            if not elements:
                self._take_if(",")
        self._expect("]")
        id = self._new(bracket.start, bracket.start, *elements)
        return ListLiteral(id, tuple(elements), frozenset(optionals))

    def _check_optional(self, question: Token) -> None:
        if not self._has_optionals:
            self._problem("unsupported syntax '?'", question.start)

    def _map(self) -> Expr:
        bracket = self._take()
        entries: list[Entry] = []
        while self._kind not in ("}", ","):
            if question := self._take_if("?"):
                self._check_optional(question)
            start = self._tokens[self._at].start
            key = self._expr()
            colon = self._expect(":")
            value = self._expr()
            id = self._new(colon.start, start, key, value)
            entries.append(Entry(id, key, value, question is not None))
            if not self._take_if(","):
                break
        else:
            if not entries:
                self._take_if(",")
        self._expect("}")
        children = [child for entry in entries for child in (entry.key, entry.value)]
        return MapLiteral(self._new(bracket.start, bracket.start, *children), tuple(entries))

    def _struct(self, first: Token) -> Expr:
        names = [self._take().text]
        while self._take_if("."):
            names.append(self._take().text)
        bracket = self._take()
        fields: list[Field] = []
        list_start = self._tokens[self._at].start
        while self._kind not in ("}", ","):
            fields.append(self._field(list_start))
            if not self._take_if(","):
                break
        else:
            if not fields:
                self._take_if(",")
        self._expect("}")
        id = self._new(bracket.start, first.start, *(field.value for field in fields))
        return StructLiteral(id, ("." if first.kind == "." else "") + ".".join(names), tuple(fields))

    def _field(self, list_start: int) -> Field:
        if question := self._take_if("?"):
            self._check_optional(question)
        name = self._expect(IDENTIFIER, ESC_IDENTIFIER)
        if name.kind == ESC_IDENTIFIER:
            self._problem("unsupported syntax: '`'", list_start)
        colon = self._expect(":")
        value = self._expr()
        return Field(self._new(colon.start, name.start, value), name.text, value, question is not None)

    def _literal(self) -> Expr:
        sign = self._take_if("-")
        token = self._expect(*(_NUMBERS if sign else _LITERALS))
        start = sign.start if sign else token.start
        try:
            value = literal_value(token, negative=sign is not None)
        except ValueError as e:
            return self._problem(str(e), start)
        return Literal(self._new(start, start), value)
