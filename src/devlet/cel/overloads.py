"""Overload resolution: which overloads of a function fit the types of the arguments, and the type of the result."""

from collections.abc import Sequence
from typing import Final

from devlet.cel.functions import Function, Overload
from devlet.cel.substitution import Substitution, instantiate, parameters
from devlet.cel.types import DYN, Type, describe

_NUMBERS: Final = ("double", "int64", "uint64")


def resolve(
    function: Function, types: Sequence[Type], substitution: Substitution, *, is_member: bool, mixed_numbers: bool
) -> tuple[Type | None, tuple[str, ...]]:
    """Return the type of the result and the ids of the overloads that fit; the type is None if none fits.

    The target of a member function is the first of `types`. Without `mixed_numbers`, numbers of different types cannot
    be ordered.
    """
    result: Type | None = None
    fitting: list[str] = []
    for overload in function.overloads:
        if overload.is_member is not is_member:
            continue
        if not mixed_numbers and _compares_mixed_numbers(overload.id):
            continue
        found = _result(overload, types, substitution)
        if found is None:
            continue
        fitting.append(overload.id)
        if result is None:
            result = found
        elif not result.is_dyn and found != result:
            result = DYN
    return result, tuple(fitting)


def no_overload(function: Function, types: Sequence[Type], substitution: Substitution, *, is_member: bool) -> str:
    """Return the message that no overload fits."""
    texts = [describe(substitution.apply(t, free_is_dyn=True)) for t in types]
    target = f"{texts.pop(0)}." if is_member else ""
    return f"found no matching overload for '{function.name}' applied to '{target}({', '.join(texts)})'"


def _result(overload: Overload, types: Sequence[Type], substitution: Substitution) -> Type | None:
    """Return what this overload returns for these arguments; None if they do not fit."""
    params, result = overload.params, overload.result
    if names := parameters((result, *params)):
        variables = {name: substitution.variable() for name in names}
        params = tuple(instantiate(p, variables) for p in params)
        result = instantiate(result, variables)
    return substitution.apply(result) if substitution.all_assignable(types, params) else None


def _compares_mixed_numbers(overload: str) -> bool:
    """Return whether this is an overload such as `less_int64_double`."""
    name, _, right = overload.rpartition("_")
    operator, _, left = name.rpartition("_")
    return right in _NUMBERS and left in _NUMBERS and left != right and operator.startswith(("less", "greater"))
