"""Bindings of type variables, and whether one type can be used where another is expected.

A query may bind variables: `assignable(list(_var0), list(int))` is true, and from then on `_var0` is int. If the result
is false, nothing is bound. Types can double in size with every step of an expression (`.map(x, {x: x})`), so the work
is limited.
"""

from collections.abc import Sequence
from functools import lru_cache

from devlet.cel.types import DYN, Kind, Type

MAX_DEPTH = 128
MAX_WORK = 5_000

_NULLABLE = {Kind.NULL, Kind.OPAQUE, Kind.OBJECT, Kind.DURATION, Kind.TIMESTAMP}
_WITH_PARAMETERS = {Kind.OPAQUE, Kind.LIST, Kind.MAP}


class TypeTooComplex(Exception):
    """A type is nested too deep or too large to work with."""


class Substitution:
    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._undo: list[tuple[str, Type | None]] = []
        self._work = 0
        self._count = 0

    def variable(self) -> Type:
        """Return a new variable. Messages show the names, so the order in which variables are created matters."""
        self._count += 1
        return Type(Kind.UNRESOLVED, f"_var{self._count - 1}")

    def assignable(self, a: Type, b: Type) -> bool:
        return self.all_assignable((a,), (b,))

    def all_assignable(self, left: Sequence[Type], right: Sequence[Type]) -> bool:
        """Return whether each type fits its counterpart. If one does not, no variable is bound."""
        self._undo.clear()
        self._work = 0
        if self._all(left, right, 0):
            return True
        for name, before in reversed(self._undo):
            if before is None:
                del self._bound[name]
            else:
                self._bound[name] = before
        return False

    def apply(self, t: Type, *, free_is_dyn: bool = False) -> Type:
        """Return the type with bound variables replaced; free variables stay or become dyn."""
        self._work = 0
        return self._apply(t, free_is_dyn, 0)

    def _apply(self, t: Type, free_is_dyn: bool, depth: int) -> Type:
        self._step(depth)
        if t.is_variable:
            if found := self._bound.get(t.name):
                return self._apply(found, free_is_dyn, depth + 1)
            return DYN if free_is_dyn else t
        if not t.params:
            return t
        params: list[Type] = []
        for p in t.params:  # no comprehension: it would double the depth of the stack
            param = self._apply(p, free_is_dyn, depth + 1)
            params.append(param)
        return Type(t.kind, t.name, tuple(params))

    def _all(self, left: Sequence[Type], right: Sequence[Type], depth: int) -> bool:
        if len(left) != len(right):
            return False
        for a, b in zip(left, right, strict=True):  # no generator, for the same reason
            if not self._assignable(a, b, depth):
                return False
        return True

    def _assignable(self, a: Type, b: Type, depth: int) -> bool:
        self._step(depth)
        if b.is_variable:
            fits, was_bound = self._stands_for(b, a, depth)
            if fits or was_bound:
                return fits
        if a.is_variable:
            return self._stands_for(a, b, depth)[0]
        if a.is_dyn or b.is_dyn or Kind.ERROR in (a.kind, b.kind):
            return True
        if a.kind is Kind.NULL or b.kind is Kind.NULL:
            other = b if a.kind is Kind.NULL else a
            return other.nullable or other.kind in _NULLABLE
        if a.kind is not b.kind or a.name != b.name:
            return False
        return a.kind not in _WITH_PARAMETERS or self._all(a.params, b.params, depth + 1)

    def _stands_for(self, variable: Type, t: Type, depth: int) -> tuple[bool, bool]:
        """Return whether the variable can be this type, and whether it was bound before. Binds it to the more general
        one."""
        if variable == t:
            return True, True
        bound = self._bound.get(variable.name)
        if bound is None:
            if self._occurs(variable, t, depth):
                return False, False
            self._bind(variable, t)
            return True, False
        if bound == t:
            return True, True
        if not self._assignable(t, bound, depth + 1):
            return False, True
        general = most_general(t, bound)
        if not self._occurs(variable, general, depth):
            self._bind(variable, general)
        return True, True

    def _bind(self, variable: Type, t: Type) -> None:
        self._undo.append((variable.name, self._bound.get(variable.name)))
        self._bound[variable.name] = t

    def _occurs(self, variable: Type, within: Type, depth: int) -> bool:
        self._step(depth)
        if within == variable:
            return True
        if within.is_variable:
            bound = self._bound.get(within.name)
            return bound is not None and self._occurs(variable, bound, depth + 1)
        for p in within.params:
            if self._occurs(variable, p, depth + 1):
                return True
        return False

    def _step(self, depth: int) -> None:
        self._work += 1
        if depth > MAX_DEPTH or self._work > MAX_WORK:
            raise TypeTooComplex


def most_general(a: Type, b: Type) -> Type:
    """Return the more general of two types that fit each other."""
    return a if _says_less(a, b) else b


def _says_less(a: Type, b: Type) -> bool:
    """Return whether a is at least as general as b."""
    if a.is_dyn or a.is_variable:
        return True
    if b.is_dyn or b.is_variable or a.kind is not b.kind or a.name != b.name:
        return False
    if a.kind not in _WITH_PARAMETERS:
        return True
    return len(a.params) == len(b.params) and all(_says_less(p, q) for p, q in zip(a.params, b.params, strict=True))


@lru_cache(maxsize=1024)
def parameters(signature: tuple[Type, ...]) -> tuple[str, ...]:
    """Return the names of the type variables in a signature, in order of appearance."""
    names: dict[str, None] = {}
    for t in signature:
        if t.kind is Kind.PARAM:
            names[t.name] = None
        names.update(dict.fromkeys(parameters(t.params)))
    return tuple(names)


def instantiate(t: Type, variables: dict[str, Type]) -> Type:
    if t.kind is Kind.PARAM:
        return variables[t.name]
    return Type(t.kind, t.name, tuple(instantiate(p, variables) for p in t.params)) if t.params else t
