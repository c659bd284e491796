"""The nodes of a tree while it is parsed: their ids, places and heights, and the expansion of macros."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from devlet.cel.ast import Call, Expr, Literal
from devlet.cel.issues import CompileError, Issue
from devlet.cel.macros import MacroError, Maker, by_signature

LARGEST: Final = 12_000
"""The limit on nodes of a tree. `optMap` copies its target, so a chain of them would use unlimited memory."""

_macros = lru_cache(maxsize=64)(by_signature)


class Nodes:
    """Creates the nodes of one expression. Everything is by node id; positions and spans are offsets in the text."""

    def __init__(self, text: str, macros: frozenset[str]) -> None:
        self.issues: list[Issue] = []
        self.positions: dict[int, int] = {}
        self.spans: dict[int, tuple[int, int]] = {}
        self.heights: dict[int, int] = {}
        self.macro_calls: dict[int, Call] = {}
        self._text = text
        self._macros = _macros(macros)

    def new(self, offset: int, span: tuple[int, int], children: Sequence[Expr] = (), *, deeper: bool = False) -> int:
        """Return an id for a node that is shown at `offset` and covers `span`."""
        id = len(self.positions) + 1
        self.positions[id] = offset
        self.spans[id] = span
        self.heights[id] = max([self.heights[child.id] for child in children]) + deeper if children else int(deeper)
        return id

    def problem(self, message: str, offset: int, end: int) -> Expr:
        """Report a problem. Return a node that takes the place of the invalid part."""
        self.issues.append(Issue(message, offset))
        return Literal(self.new(offset, (offset, end)), None)

    def call(self, id: int, function: str, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
        """Return a call, or what it expands to if it is a macro."""
        macro = self._macros.get((function, len(args), target is not None))
        if macro is None:
            return Call(id, function, target, args)
        try:
            made = macro.expand(Maker(lambda like: self._like(like or id, id)), target or args[0], args)
        except MacroError as e:
            return self.problem(e.message, self.positions[e.node], self.spans[id][1])
        if made is None:
            return Call(id, function, target, args)
        self.spans[made.id] = self.spans[id]
        self.heights[made.id] = self.heights[id]
        self.macro_calls[made.id] = Call(0, function, target, args)
        return made

    def _like(self, id: int, macro: int) -> int:
        new = len(self.positions) + 1
        if new > LARGEST:
            message = f"expression is too large: its macros expand to more than {LARGEST} nodes"
            raise CompileError(self._text, [Issue(message, self.positions[macro])])
        self.positions[new] = self.positions[id]
        self.heights[new] = self.heights[id]
        return new
