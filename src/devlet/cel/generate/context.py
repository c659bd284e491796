"""State that the parts of the generator share while one expression is compiled."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from devlet.cel.ast import Call, Expr
from devlet.cel.checker import Checked
from devlet.cel.functions import Overload
from devlet.cel.generate.code import UNKNOWN, Code, Operand
from devlet.cel.operators import ABSENT
from devlet.cel.types import BOOL, DYN, Kind, Type, unwrap_optional
from devlet.cel.values import NONE, CelError, Optional, Value

Steps = Generator[Expr, Operand, Operand]
"""Compiles a node: yields each child, receives its operand, and finally returns the node's own operand."""


class NotGenerated(Exception):
    """The expression cannot be generated and is evaluated instead. Realistic expressions never raise this."""


class Inexact(CelError):
    """An error as far as `&&` and `||` are concerned; only `evaluate` knows its text."""

    def __init__(self) -> None:
        super().__init__("")


class NotCovered(Exception):
    """The generated code does not cover these values: `evaluate` has to find the result."""


@dataclass(slots=True)
class Context:
    """The shared state. `constants` are the known values by node; `scope` has the variables by the user's names."""

    checked: Checked
    constants: Mapping[int, Value]
    code: Code
    scope: dict[str, Operand] = field(default_factory=dict)

    def overloads(self, node: Call) -> list[Overload]:
        """Return the overloads that fit, as far as the checker could determine."""
        reference = self.checked.references.get(node.id)
        known = self.checked.environment.functions[node.function].overloads
        return [overload for overload in known if reference is None or overload.id in reference.overloads]

    def overload(self, node: Call) -> Overload | None:
        """Return the overload if exactly one fits."""
        found = self.overloads(node)
        return found[0] if len(found) == 1 else None

    @contextmanager
    def variables(self, added: Mapping[str, Operand]) -> Iterator[None]:
        """Add variables, which may hide others."""
        before, self.scope = self.scope, {**self.scope, **added}
        try:
            yield
        finally:
            self.scope = before

    def arguments(self, nodes: Iterable[Expr]) -> Generator[Expr, Operand, list[Operand]]:
        """Return operands in the order of evaluation. At most one of them may still fail, so they may be on one
        line."""
        operands: list[Operand] = []
        failures = self.code.failures
        for node in nodes:
            fails, crashes = self.code.failures > failures, self.code.crashes
            with self.code.apart(0) as lines:
                operand = yield node
                operand = self.value(operand) if operand.bare else operand
            fails = fails or any(earlier.keys for earlier in operands)
            self.code.is_fragile |= fails and self.code.crashes > crashes
            if lines or operand.keys:
                operands = [self.code.settled(earlier) for earlier in operands]
            self.code.body += lines
            operands.append(operand)
        return operands

    def fail_if(self, condition: str) -> None:
        """Raise an error whose text is left to `evaluate`."""
        self.code.nest(f"if {condition}:", f"raise {self.code.known(Inexact)}")
        self.code.may_fail()

    def value(self, operand: Operand) -> Operand:
        """Return a value that cannot fail any more, with an optional in its box."""
        operand = self.code.settled(operand)
        if not operand.bare:
            return operand
        bare = self.code.stored(operand)
        none, box = self.code.known(NONE), self.code.known(Optional)
        return self.code.combined(f"({none} if {self.is_absent(bare)} else {box}({bare.text}))", operand.type)

    def bare(self, operand: Operand) -> Operand:
        """Unbox an optional. If the value may turn out not to be an optional, `evaluate` handles it."""
        if operand.bare:
            return self.code.settled(operand)
        if not unwrap_optional(operand.type)[1]:
            raise NotGenerated
        box = self.code.stored(operand)
        text = f"({box.text}.value if {box.text}.has_value else {self.code.known(ABSENT)})"
        return Operand(text, operand.type, bare=True)

    def simple(self, operand: Operand) -> Operand:
        return self.code.stored(self.value(operand))

    def is_absent(self, bare: Operand) -> str:
        return f"{bare.text} is {self.code.known(ABSENT)}"

    def condition(self, operand: Operand) -> Operand:
        """Return an operand of a logical operator. Any value that is not a bool is an error."""
        if operand.type == BOOL:
            return operand
        operand = self.simple(operand)
        self.fail_if(f"{operand.text} is not True and {operand.text} is not False")
        return Operand(operand.text, BOOL, simple=True, constant=operand.constant)


def is_constant(operand: Operand) -> bool:
    return operand.constant is not UNKNOWN


def joined(types: Iterable[Type]) -> Type:
    """Return the type of a value that has one of these types."""
    found = list(types)
    if not found or any(_shape(t) != _shape(found[0]) for t in found):
        return DYN
    return replace(found[0], params=tuple(map(joined, zip(*(t.params for t in found), strict=True))))


def _shape(t: Type) -> tuple[Kind, str, int]:
    return t.kind, t.name, len(t.params)


def is_dynamic(t: Type) -> bool:
    return t.kind in (Kind.DYN, Kind.ANY)


def parts(node: Call) -> tuple[Expr, ...]:
    """Return the arguments, preceded by the target if there is one."""
    return node.args if node.target is None else (node.target, *node.args)
