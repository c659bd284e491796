"""How a library declares its functions: signatures for the checker, Python code, and the cost of a call.

A function has overloads. The checker keeps those whose parameters fit the static types. At run time the first of them
whose parameters fit the values is called, so an implementation may rely on the types of its arguments.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from devlet.cel.types import Type
from devlet.cel.values import Value

UNBOUNDED = 2**64 - 1
"""Sizes and costs saturate here."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range of sizes or costs, from `min` to `max`."""

    min: int
    max: int


@dataclass(frozen=True, slots=True)
class SizedNode:
    """What the estimate knows about an argument: its type, its path from a variable, and its size if known."""

    type: Type
    path: tuple[str, ...]
    size: Range | None
    literal: Value = None
    is_literal: bool = False
    items: Range | None = None
    """The host's limits on the size of the list's elements."""


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """The cost of the call itself, without its arguments, and the size of the result if known."""

    cost: Range
    size: Range | None = None


Estimator = Callable[[SizedNode | None, Sequence[SizedNode]], CallEstimate | None]
"""Takes the target (None for a global function) and the arguments. None is the default: one unit, unknown size."""

CostOf = Callable[[Sequence[Value], Value], int | None]
"""Returns the actual cost of a call from its arguments (a target first) and its result. None stands for the default."""


@dataclass(frozen=True, slots=True)
class Overload:
    """An overload. If it `is_member`, the target is the first of `params`. `call` takes evaluated arguments and raises
    CelError."""

    id: str
    params: tuple[Type, ...]
    result: Type
    call: Callable[..., Value]
    is_member: bool = False
    estimate: Estimator | None = None
    cost: CostOf | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A function. `dispatch`, if set, is called instead of an overload for any arguments; operators use it."""

    name: str
    overloads: tuple[Overload, ...]
    dispatch: Callable[..., Value] | None = None


@dataclass(frozen=True, slots=True)
class Library:
    """A library. `types` are the names that can be written in an expression as types, e.g. `kubernetes.Quantity`."""

    name: str
    functions: tuple[Function, ...]
    types: tuple[Type, ...] = ()
    macros: tuple[str, ...] = field(default=())
    """Names of the macros (devlet.cel.macros) that belong to the library."""
