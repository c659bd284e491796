"""The type checker: find the type of every part of an expression, and what its names and calls refer to.

The checker reports all issues of an expression, not only the first. Invalid parts get the type `!error!`, which is
compatible with every type. The tree may be deeper than Python's stack, so visits are generators: each yields the
children it needs and receives them checked, with dotted names resolved.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from devlet.cel.ast import (
    Call,
    Comprehension,
    Entry,
    Expr,
    Field,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Parsed,
    Select,
    StructLiteral,
)
from devlet.cel.environment import Environment, Name
from devlet.cel.functions import Function
from devlet.cel.issues import NOWHERE, CompileError, Issue
from devlet.cel.overloads import no_overload, resolve
from devlet.cel.protobuf import message_name
from devlet.cel.recursion import with_room
from devlet.cel.scopes import Scopes
from devlet.cel.substitution import Substitution, TypeTooComplex, most_general
from devlet.cel.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    Kind,
    Type,
    describe,
    list_of,
    map_of,
    optional_of,
    runtime_type,
    unwrap_optional,
)
from devlet.cel.validators import validate
from devlet.cel.values import Constant


@dataclass(frozen=True, slots=True)
class Reference:
    """The target of a node: an identifier by its full name, or the overloads of a function that fit."""

    name: str = ""
    overloads: tuple[str, ...] = ()
    value: Constant | Type = None
    """Of a constant or a type. A type without a value is known to the checker only: it cannot be evaluated."""


@dataclass(frozen=True)
class Checked:
    """A checked expression. `types` and `references` are by node id. In the tree of `parsed`, dotted names are
    resolved."""

    parsed: Parsed
    types: Mapping[int, Type]
    references: Mapping[int, Reference]
    output: Type
    environment: Environment


@with_room
def check(parsed: Parsed, environment: Environment) -> Checked:
    """Check types. Raises CompileError with all issues."""
    checker = _Checker(parsed, environment)
    root = checker.visit_all(parsed.root)
    types = checker.final_types()
    if checker.issues:
        raise CompileError(parsed.source.text, checker.issues)
    checked = Checked(replace(parsed, root=root), types, checker.references, types[root.id], environment)
    overloads = {id: reference.overloads for id, reference in checked.references.items()}
    if issues := validate(checked.parsed, types, overloads, environment):
        raise CompileError(parsed.source.text, issues)
    return checked


_Visit = Generator[Expr, Expr, Expr]

_LOGICAL: Final = frozenset({"_&&_", "_||_"})
_OPTIONAL_SELECT: Final = "_?._"


class _Checker:
    def __init__(self, parsed: Parsed, environment: Environment) -> None:
        self.issues: list[Issue] = []
        self.types: dict[int, Type] = {}
        self.references: dict[int, Reference] = {}
        self._positions = parsed.source.positions
        self._environment = environment
        self._scopes = Scopes(environment)
        self._substitution = Substitution()
        self._mixed_numbers = environment.cross_type_numeric

    def visit_all(self, root: Expr) -> Expr:
        stack = [(root, self._visit(root))]
        done: Expr | None = None
        while stack:
            node, visit = stack[-1]
            try:
                part = next(visit) if done is None else visit.send(done)
                done = None
                stack.append((part, self._visit(part)))
            except StopIteration as stop:
                done = stop.value
                stack.pop()
            except TypeTooComplex:
                self._too_complex(node.id)
                break
        return done or root

    def final_types(self) -> dict[int, Type]:
        """Return the types without type variables."""
        found: dict[int, Type] = {}
        for id, t in self.types.items():
            try:
                found[id] = self._substitution.apply(t, free_is_dyn=True)
            except TypeTooComplex:
                self._too_complex(id)
                break
        return found

    def _too_complex(self, id: int) -> None:
        """Report an expression that exceeds devlet's own limits. The reference takes minutes where types double, and
        has no limit on depth."""
        if not self.issues:
            self._report(id, "the type of this expression is nested too deeply")

    def _visit(self, e: Expr) -> _Visit:
        match e:
            case Literal():
                return self._literal(e)
            case Ident():
                return self._ident(e)
            case Select():
                return self._select(e)
            case Call(function=function):
                return self._optional_select(e) if function == _OPTIONAL_SELECT else self._call(e)
            case ListLiteral():
                return self._list(e)
            case MapLiteral():
                return self._map(e)
            case StructLiteral():
                return self._struct(e)
            case Comprehension():
                return self._comprehension(e)

    def _report(self, id: int, message: str) -> None:
        self.issues.append(Issue(message, self._positions.get(id, NOWHERE)))

    def _undeclared(self, id: int, name: str) -> None:
        self._report(id, f"undeclared reference to '{name}' (in container '')")
        self.types[id] = ERROR

    def _mismatch(self, id: int, expected: Type, found: Type) -> None:
        self._report(id, f"expected type '{describe(expected)}' but found '{describe(found)}'")

    def _type(self, e: Expr) -> Type:
        return self.types[e.id]

    # Names

    def _refer(self, id: int, name: Name) -> Ident:
        self.types[id] = name.type
        self.references[id] = Reference(name.name, value=name.value)
        return Ident(id, name.name)

    def _literal(self, e: Literal) -> _Visit:
        yield from ()
        self.types[e.id] = runtime_type(e.value)
        return e

    def _ident(self, e: Ident) -> _Visit:
        yield from ()
        if name := self._scopes.find(e.name):
            return self._refer(e.id, name)
        self._undeclared(e.id, e.name)
        return e

    # Fields

    def _select(self, e: Select) -> _Visit:
        qualified = None if e.is_test else self._scopes.qualified(e)
        if qualified and (name := self._scopes.find(qualified)):
            return self._refer(e.id, name)
        operand = yield e.operand
        result = self._field(e.id, operand, e.field)
        self.types[e.id] = BOOL if e.is_test else self._substitution.apply(result)
        return replace(e, operand=operand)

    def _optional_select(self, e: Call) -> _Visit:
        operand = yield e.args[0]
        field = e.args[1]
        name = field.value if isinstance(field, Literal) else None
        result = self._field(e.id, operand, str(name), is_optional=True)
        self.types[e.id] = self._substitution.apply(result)
        self.references[e.id] = Reference(overloads=("select_optional_field",))
        return replace(e, args=(operand, field))

    def _field(self, id: int, operand: Expr, field: str, *, is_optional: bool = False) -> Type:
        target, was_optional = unwrap_optional(self._substitution.apply(self._type(operand)))
        result = self._field_of(id, target, field)
        return optional_of(result) if is_optional or was_optional else result

    def _field_of(self, id: int, target: Type, field: str) -> Type:
        if target.kind is Kind.MAP:
            return target.params[1]
        if target.kind is Kind.OBJECT:
            return self._object_field(id, target.name, field)
        if target.is_variable:
            self._substitution.assignable(DYN, target)  # bound to dyn, so that it stays dyn
        elif not target.is_dyn and target.kind is not Kind.ERROR:
            self._report(id, f"type '{describe(target)}' does not support field selection")
        return DYN

    def _object_field(self, id: int, type_name: str, field: str) -> Type:
        if not self._environment.has_fields(type_name):
            self._report(id, f"unexpected failed resolution of '{type_name}'")
        elif found := self._environment.field_type(type_name, field):
            return found
        else:
            self._report(id, f"undefined field '{field}'")
        return ERROR

    # Calls

    def _call(self, e: Call) -> _Visit:
        args: list[Expr] = []
        for part in e.args:
            arg = yield part
            args.append(arg)
        if e.target is None:
            function = self._scopes.function(e.function)
        else:
            prefix = self._scopes.qualified(e.target)
            function = self._scopes.function(f"{prefix}.{e.function}") if prefix else None
        if function:
            self._resolve(e.id, function, None, args)
            return Call(e.id, function.name, None, tuple(args))
        if e.target is None:
            self._undeclared(e.id, e.function)
            return e
        target = yield e.target
        if function := self._scopes.function(e.function):
            self._resolve(e.id, function, target, args)
        else:
            self._undeclared(e.id, e.function)
        return Call(e.id, e.function, target, tuple(args))

    def _resolve(self, id: int, function: Function, target: Expr | None, args: Sequence[Expr]) -> None:
        if function.name in _LOGICAL:
            self._resolve_logical(id, function, args)
            return
        is_member = target is not None
        given = [self._type(arg) for arg in (args if target is None else (target, *args))]
        result, overloads = resolve(
            function, given, self._substitution, is_member=is_member, mixed_numbers=self._mixed_numbers
        )
        if result is None:
            self._report(id, no_overload(function, given, self._substitution, is_member=is_member))
            self.types[id] = ERROR
        else:
            self.types[id] = result
            self.references[id] = Reference(overloads=overloads)

    def _resolve_logical(self, id: int, function: Function, args: Sequence[Expr]) -> None:
        wrong = [arg for arg in args if not self._substitution.assignable(self._type(arg), BOOL)]
        for arg in wrong:
            self._mismatch(arg.id, BOOL, self._type(arg))
        self.types[id] = ERROR if wrong else BOOL
        if not wrong:
            self.references[id] = Reference(overloads=tuple(o.id for o in function.overloads))

    # Literals of lists, maps and objects

    def _list(self, e: ListLiteral) -> _Visit:
        elements: list[Expr] = []
        joined: Type | None = None
        for i, part in enumerate(e.elements):
            element = yield part
            elements.append(element)
            joined = self._join(joined, self._element_type(element, i in e.optionals))
        self.types[e.id] = list_of(joined or self._substitution.variable())
        return replace(e, elements=tuple(elements))

    def _map(self, e: MapLiteral) -> _Visit:
        entries: list[Entry] = []
        keys: Type | None = None
        values: Type | None = None
        for entry in e.entries:
            key = yield entry.key
            keys = self._join(keys, self._type(key))
            value = yield entry.value
            values = self._join(values, self._element_type(value, entry.optional))
            entries.append(replace(entry, key=key, value=value))
        keys = keys or self._substitution.variable()
        self.types[e.id] = map_of(keys, values or self._substitution.variable())
        return replace(e, entries=tuple(entries))

    def _element_type(self, element: Expr, is_optional: bool) -> Type:
        t = self._type(element)
        if not is_optional:
            return t
        inner, was_optional = unwrap_optional(t)
        if not was_optional and not inner.is_dyn:
            self._mismatch(element.id, optional_of(inner), inner)
        return inner

    def _join(self, before: Type | None, t: Type) -> Type:
        """Join two element types. Mixed types become dyn here; the validators reject them for Kubernetes."""
        if before is None:
            return t
        return most_general(before, t) if self._substitution.assignable(before, t) else DYN

    def _struct(self, e: StructLiteral) -> _Visit:
        name = self._scopes.find(e.type_name)
        if name is None:
            self._undeclared(e.id, e.type_name)
            return e
        self.references[e.id] = Reference(name.name)
        self.types[e.id] = result = self._message_type(e.id, name)
        type_name = message_name(result) or name.name
        fields: list[Field] = []
        for field in e.fields:
            value = yield field.value
            self._initialize(type_name, field, value)
            fields.append(replace(field, value=value))
        return StructLiteral(e.id, name.name, tuple(fields))

    def _message_type(self, id: int, name: Name) -> Type:
        if name.type.kind is Kind.ERROR:
            return ERROR
        if name.type.kind is not Kind.TYPE:
            self._report(id, f"'{name.type.type_name}' is not a type")
            return ERROR
        inner = name.type.params[0] if name.type.params else name.type
        if inner.kind is Kind.OBJECT or message_name(inner):
            return inner
        self._report(id, f"'{inner.type_name}' is not a message type")
        return ERROR

    def _initialize(self, type_name: str, field: Field, value: Expr) -> None:
        expected = self._object_field(field.id, type_name, field.name)
        found = self._element_type(value, field.optional)
        if not self._substitution.assignable(expected, found):
            text = f"expected type of field '{field.name}' is '{describe(expected)}'"
            self._report(field.id, f"{text} but provided type is '{describe(found)}'")

    # Comprehensions

    def _comprehension(self, e: Comprehension) -> _Visit:
        range = yield e.range
        init = yield e.init
        accumulated = self._type(init)
        first, second = self._range_types(range, e.variable2)
        self._mixed_numbers = True  # the reference forgets what is disabled when it enters a comprehension
        self._scopes.enter({e.accumulator: accumulated})
        self._scopes.enter({e.variable2: second, e.variable: first} if e.variable2 else {e.variable: first})
        condition = yield e.condition
        self._expect(condition, BOOL)
        step = yield e.step
        self._expect(step, accumulated)
        self._scopes.leave()
        result = yield e.result
        self._scopes.leave()
        self.types[e.id] = self._substitution.apply(self._type(result))
        return replace(e, range=range, init=init, condition=condition, step=step, result=result)

    def _range_types(self, range: Expr, has_second: str) -> tuple[Type, Type]:
        """Return the types of the variables. The second is used only if there is a second variable."""
        t = self._substitution.apply(self._type(range))
        if t.kind is Kind.LIST:
            return (INT, t.params[0]) if has_second else (t.params[0], DYN)
        if t.kind is Kind.MAP:
            return t.params[0], t.params[1]
        if t.kind in (Kind.DYN, Kind.ERROR) or t.is_variable:
            self._substitution.assignable(DYN, t)  # bound to dyn, so that it stays dyn
            return DYN, DYN
        text = f"expression of type '{describe(t)}' cannot be range of a comprehension"
        self._report(range.id, f"{text} (must be list, map, or dynamic)")
        return ERROR, ERROR

    def _expect(self, e: Expr, t: Type) -> None:
        if not self._substitution.assignable(t, self._type(e)):
            self._mismatch(e.id, t, self._type(e))
