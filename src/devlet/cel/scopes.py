"""The names that an expression can use: those of the environment, and the variables of enclosing comprehensions."""

from devlet.cel.ast import Expr, Ident, Select
from devlet.cel.environment import Environment, Name
from devlet.cel.functions import Function
from devlet.cel.types import Type


class Scopes:
    """The scopes around one place in an expression. A name of an inner scope hides the same name further out."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._open: list[dict[str, Type]] = []

    def enter(self, variables: dict[str, Type]) -> None:
        self._open.append(variables)

    def leave(self) -> None:
        self._open.pop()

    def find(self, name: str) -> Name | None:
        name = name.removeprefix(".")
        for scope in reversed(self._open):
            if name in scope:
                return Name(name, scope[name])
        return self._environment.names.get(name)

    def function(self, name: str) -> Function | None:
        return self._environment.functions.get(name.removeprefix("."))

    def qualified(self, e: Expr) -> str | None:
        """Return the dotted name that an expression could be; None if it is longer than any existing name."""
        parts: list[str] = []
        while isinstance(e, Select) and not e.is_test and len(parts) < self._environment.longest_name:
            parts.append(e.field)
            e = e.operand
        return ".".join((e.name, *reversed(parts))) if isinstance(e, Ident) else None
