"""Macros: calls that the parser replaces by other expressions, for example `has` and `all`.

Expansions have exactly the shape that they have in the reference, because costs are counted on them. A macro is
identified by its name, its number of arguments and whether it is called on a target; every other call is a function
call.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
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
    Select,
    StructLiteral,
)
from devlet.cel.values import Constant

ACCUMULATOR: Final = "@result"
UNUSED: Final = "#unused"
MAP_INSERT: Final = "cel.@mapInsert"


class MacroError(Exception):
    """The arguments do not fit; `node` is the id of the one to report."""

    def __init__(self, message: str, node: int) -> None:
        super().__init__(message)
        self.message = message
        self.node = node


@dataclass(frozen=True, slots=True)
class Maker:
    """Creates the nodes of an expansion. `new_id` returns an id with the position of the macro's call, `new_id(x)` with
    that of x."""

    new_id: Callable[[int | None], int]

    def literal(self, value: Constant) -> Expr:
        return Literal(self.new_id(None), value)

    def ident(self, name: str = ACCUMULATOR) -> Expr:
        return Ident(self.new_id(None), name)

    def list(self, *elements: Expr) -> Expr:
        return ListLiteral(self.new_id(None), elements)

    def map(self) -> Expr:
        return MapLiteral(self.new_id(None), ())

    def call(self, function: str, *args: Expr) -> Expr:
        return Call(self.new_id(None), function, None, args)

    def member(self, function: str, target: Expr, *args: Expr) -> Expr:
        return Call(self.new_id(None), function, target, args)

    def test(self, operand: Expr, field: str) -> Expr:
        return Select(self.new_id(None), operand, field, is_test=True)

    def fold(
        self,
        over: Expr,
        variables: tuple[str, str],
        init: Expr,
        condition: Expr,
        step: Expr,
        result: Expr | None = None,
        accumulator: str = ACCUMULATOR,
    ) -> Expr:
        result = result or self.ident(accumulator)
        return Comprehension(self.new_id(None), over, *variables, accumulator, init, condition, step, result)

    def copy(self, node: Expr) -> Expr:
        """Copy the tree with ids of its own."""
        id = self.new_id(node.id)
        match node:
            case Literal():
                return Literal(id, node.value)
            case Ident():
                return Ident(id, node.name)
            case Select():
                return Select(id, self.copy(node.operand), node.field, node.is_test)
            case Call():
                target = None if node.target is None else self.copy(node.target)
                return Call(id, node.function, target, tuple(map(self.copy, node.args)))
            case ListLiteral():
                return ListLiteral(id, tuple(map(self.copy, node.elements)), node.optionals)
            case MapLiteral():
                return MapLiteral(id, tuple(map(self._entry, node.entries)))
            case StructLiteral():
                return StructLiteral(id, node.type_name, tuple(map(self._field, node.fields)))
            case Comprehension():
                parts = (node.init, node.condition, node.step, node.result)
                over, init, condition, step, result = map(self.copy, (node.range, *parts))
                names = (node.variable, node.variable2, node.accumulator)
                return Comprehension(id, over, *names, init, condition, step, result)

    def _entry(self, entry: Entry) -> Entry:
        return Entry(self.new_id(None), self.copy(entry.key), self.copy(entry.value), entry.optional)

    def _field(self, field: Field) -> Field:
        return Field(self.new_id(None), field.name, self.copy(field.value), field.optional)


Expander = Callable[[Maker, Expr, tuple[Expr, ...]], Expr | None]
"""Takes the target (for a global macro its first argument) and the arguments. Returns None if it is a function call."""


def _name(node: Expr, message: str) -> str:
    if isinstance(node, Ident):
        return node.name
    raise MacroError(message, node.id)


def _variable(node: Expr, message: str) -> str:
    name = _name(node, message)
    _refuse_accumulator(name, node)
    return name


def _refuse_accumulator(name: str, node: Expr) -> None:
    if name in (ACCUMULATOR, "__result__"):
        raise MacroError("iteration variable overwrites accumulator variable", node.id)


def _one(args: tuple[Expr, ...]) -> tuple[tuple[str, str], tuple[Expr, ...]]:
    return (_variable(args[0], "argument must be a simple name"), ""), args[1:]


def _one_of_list(args: tuple[Expr, ...]) -> tuple[tuple[str, str], tuple[Expr, ...]]:
    return (_variable(args[0], "argument is not an identifier"), ""), args[1:]


def _two(args: tuple[Expr, ...]) -> tuple[tuple[str, str], tuple[Expr, ...]]:
    first, second = (_name(arg, "argument must be a simple name") for arg in args[:2])
    if first == second:
        raise MacroError(f"duplicate variable name: {first}", args[1].id)
    _refuse_accumulator(first, args[0])
    _refuse_accumulator(second, args[1])
    return (first, second), args[2:]


_Variables = Callable[[tuple[Expr, ...]], tuple[tuple[str, str], tuple[Expr, ...]]]


def _all(split: _Variables) -> Expander:
    def expand(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
        variables, (predicate,) = split(args)
        go_on = make.call("@not_strictly_false", make.ident())
        return make.fold(target, variables, make.literal(True), go_on, make.call("_&&_", make.ident(), predicate))

    return expand


def _exists(split: _Variables) -> Expander:
    def expand(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
        variables, (predicate,) = split(args)
        go_on = make.call("@not_strictly_false", make.call("!_", make.ident()))
        return make.fold(target, variables, make.literal(False), go_on, make.call("_||_", make.ident(), predicate))

    return expand


def _exists_one(split: _Variables) -> Expander:
    def expand(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
        variables, (predicate,) = split(args)
        more = make.call("_+_", make.ident(), make.literal(1))
        step = make.call("_?_:_", predicate, more, make.ident())
        result = make.call("_==_", make.ident(), make.literal(1))
        return make.fold(target, variables, make.literal(0), make.literal(True), step, result)

    return expand


def _collect(make: Maker, args: tuple[Expr, ...], put: Callable[[Expr], Expr]) -> Expr:
    """Return the step of a loop that collects `put(args[-1])`, if the condition args[0] of two arguments holds."""
    step = put(args[-1])
    return step if len(args) == 1 else make.call("_?_:_", args[0], step, make.ident())


def _map(split: _Variables) -> Callable[[Maker, Expr, tuple[Expr, ...]], Expr]:
    def expand(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
        variables, rest = split(args)
        step = _collect(make, rest, lambda value: make.call("_+_", make.ident(), make.list(value)))
        return make.fold(target, variables, make.list(), make.literal(True), step)

    return expand


def _filter(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr | None:
    return _map(_one_of_list)(make, target, (args[0], args[1], args[0]))


def _transform_map(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
    variables, rest = _two(args)
    step = _collect(make, rest, lambda value: make.call(MAP_INSERT, make.ident(), make.ident(variables[0]), value))
    return make.fold(target, variables, make.map(), make.literal(True), step)


def _transform_map_entry(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
    variables, rest = _two(args)
    step = _collect(make, rest, lambda entry: make.call(MAP_INSERT, make.ident(), entry))
    return make.fold(target, variables, make.map(), make.literal(True), step)


def _has(make: Maker, _: Expr, args: tuple[Expr, ...]) -> Expr:
    if isinstance(args[0], Select):
        return make.test(args[0].operand, args[0].field)
    raise MacroError("invalid argument to has() macro", args[0].id)


def _let(make: Maker, name: str, value: Expr, result: Expr) -> Expr:
    """Return a loop over an empty list, of which only the initial value and the result count."""
    return make.fold(make.list(), (UNUSED, ""), value, make.literal(False), make.ident(name), result, accumulator=name)


def _bind(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr | None:
    if not (isinstance(target, Ident) and target.name == "cel"):
        return None
    return _let(make, _name(args[0], "cel.bind() variable names must be simple identifiers"), args[1], args[2])


def _opt_map(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
    name = _name(args[0], "optMap() variable name must be a simple identifier")
    value = _let(make, name, make.member("value", make.copy(target)), args[1])
    return _if_there(make, target, make.call("optional.of", value))


def _opt_flat_map(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
    name = _name(args[0], "optFlatMap() variable name must be a simple identifier")
    return _if_there(make, target, _let(make, name, make.member("value", make.copy(target)), args[1]))


def _if_there(make: Maker, target: Expr, then: Expr) -> Expr:
    return make.call("_?_:_", make.member("hasValue", target), then, make.call("optional.none"))


def _sort_by(make: Maker, target: Expr, args: tuple[Expr, ...]) -> Expr:
    if isinstance(target, Literal | MapLiteral | StructLiteral):
        raise MacroError(
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression", target.id
        )
    name = "@__sortBy_input__"
    keys = _map(_one_of_list)(make, make.ident(name), args)
    return _let(make, name, target, make.member("@sortByAssociatedKeys", make.ident(name), keys))


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro. `name` is its name in environments; a two-variable macro that shares its name with another has a `2`
    appended."""

    name: str
    function: str
    counts: tuple[int, ...]
    expand: Expander
    on_target: bool = True


_MACROS: Final = (
    Macro("has", "has", (1,), _has, on_target=False),
    Macro("all", "all", (2,), _all(_one)),
    Macro("exists", "exists", (2,), _exists(_one)),
    Macro("exists_one", "exists_one", (2,), _exists_one(_one)),
    Macro("map", "map", (2, 3), _map(_one_of_list)),
    Macro("filter", "filter", (2,), _filter),
    Macro("optMap", "optMap", (2,), _opt_map),
    Macro("optFlatMap", "optFlatMap", (2,), _opt_flat_map),
    Macro("cel.bind", "bind", (3,), _bind),
    Macro("all2", "all", (3,), _all(_two)),
    Macro("exists2", "exists", (3,), _exists(_two)),
    Macro("exists_one2", "exists_one", (3,), _exists_one(_two)),
    Macro("existsOne2", "existsOne", (3,), _exists_one(_two)),
    Macro("transformList", "transformList", (3, 4), _map(_two)),
    Macro("transformMap", "transformMap", (3, 4), _transform_map),
    Macro("transformMapEntry", "transformMapEntry", (3, 4), _transform_map_entry),
    Macro("sortBy", "sortBy", (2,), _sort_by),
)

STANDARD: Final = frozenset(("has", "all", "exists", "exists_one", "map", "filter"))
OPTIONALS: Final = frozenset(("optMap", "optFlatMap"))
BINDINGS: Final = frozenset(("cel.bind",))
TWO_VARIABLES: Final = frozenset(
    ("all2", "exists2", "exists_one2", "existsOne2", "transformList", "transformMap", "transformMapEntry")
)
LISTS: Final = frozenset(("sortBy",))
ALL: Final = STANDARD | OPTIONALS | BINDINGS | TWO_VARIABLES | LISTS

Signature = tuple[str, int, bool]


def by_signature(names: Collection[str]) -> Mapping[Signature, Macro]:
    """Return the named macros by function, number of arguments, and whether they are called on a target."""
    chosen = (macro for macro in _MACROS if macro.name in names)
    return {(macro.function, count, macro.on_target): macro for macro in chosen for count in macro.counts}
