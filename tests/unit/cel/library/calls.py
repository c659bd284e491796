"""Call a function of a library as an expression would."""

from collections.abc import Callable
from typing import Any

from devlet.cel.functions import Library, Overload, Range, SizedNode
from devlet.cel.types import DYN, Type


def overloads(library: Library) -> dict[str, Overload]:
    return {overload.id: overload for function in library.functions for overload in function.overloads}


def calls(library: Library) -> dict[str, Callable[..., Any]]:
    """By the id of the overload."""
    return {id: overload.call for id, overload in overloads(library).items()}


def sized(size: Range | None = None, type: Type = DYN, literal: Any = None) -> SizedNode:
    return SizedNode(type, (), size, literal, literal is not None)


def estimated(overload: Overload, *nodes: SizedNode) -> Range:
    """The estimated cost of a call; a target comes first."""
    assert overload.estimate
    target, args = (nodes[0], nodes[1:]) if overload.is_member else (None, nodes)
    call = overload.estimate(target, args)
    assert call
    return call.cost


def cost(overload: Overload, *args: Any) -> int | None:
    """The actual cost of a call that is made."""
    assert overload.cost
    return overload.cost(args, overload.call(*args))
