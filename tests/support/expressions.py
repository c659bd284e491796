"""CEL expressions by chance, the same for the same seed: correct ones, some with a wrong type, some damaged."""

import re
from collections.abc import Iterator
from typing import Final

from devlet.kit.dice import Dice
from tests.support.expression_grammar import DEVICE, LIBRARIES, LITERALS, STANDARD

__all__ = ["Expressions"]

_HOLE: Final = re.compile(r"\{([a-z]+)\}|<([a-z]):([a-z]+)>|\{string\((x)\)\}")
_NOISE: Final = ("(", ")", "[", "]", ".", "?", "&&", '"', "'", "\\", "1", "x", " in ", "!", "é", "\n", "-", "{", "=")


class Expressions:
    """`wrong` is how often a part has any type but the one that fits, `broken` how often the text is damaged."""

    def __init__(self, seed: int, *, standard: bool = False, wrong: float = 0.01, broken: float = 0.02) -> None:
        self._dice = Dice(seed)
        self._tables = (STANDARD,) if standard else (STANDARD, LIBRARIES, DEVICE)
        self._types = tuple(dict.fromkeys(name for table in (LITERALS, *self._tables) for name in table))
        self._wrong = wrong
        self._broken = broken
        self._names = 0

    def some(self, number: int, depth: int = 3) -> Iterator[str]:
        """Most of them are conditions."""
        for _ in range(number):
            self._names = 0
            type_ = "bool" if self._dice.chance(0.9) else self._dice.pick(self._types)
            text = self._of(type_, self._dice.number(1, depth), ())
            yield self._damaged(text) if self._dice.chance(self._broken) else text

    def _of(self, type_: str, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        if self._dice.chance(self._wrong):
            type_ = self._dice.pick(self._types)
        variables = [name for name, its_type in scope if its_type == type_]
        if variables and self._dice.chance(0.4):
            return self._dice.pick(variables)
        if depth <= 0 and type_ in LITERALS:
            return self._dice.pick(LITERALS[type_])
        tables = [table[type_] for table in self._tables if type_ in table]
        choices = self._dice.pick(tables)
        if depth <= 0:  # types without literals: the templates with the fewest holes end it
            choices = [text for text in choices if "{" not in text] or choices
        return self._filled(self._dice.pick(choices), depth - 1, scope)

    def _filled(self, template: str, depth: int, scope: tuple[tuple[str, str], ...]) -> str:
        own = dict[str, str]()
        bound = list(scope)

        def fill(hole: "re.Match[str]") -> str:
            type_, name, its_type, _ = hole.groups()
            if name:
                self._names += 1
                own[name] = f"{name}{self._names}"
                bound.append((own[name], its_type))
                return own[name]
            if type_ in self._types:
                text = self._of(type_, depth, tuple(bound))
                return text if _ATOM.fullmatch(text) else f"({text})"
            return f"{{string({own['x']}): {own['x']}}}"

        return _HOLE.sub(fill, template)

    def _damaged(self, text: str) -> str:
        at = self._dice.number(0, len(text))
        cut = at + self._dice.number(0, 3)
        return text[:at] + (self._dice.pick(_NOISE) if self._dice.chance(0.7) else "") + text[cut:]


_ATOM: Final = re.compile(r"[\w.]+|\"[^\"]*\"|\w+\(\"[^\"]*\"\)|\[[^\[\]]*\]")
