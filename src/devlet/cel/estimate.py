"""Estimate the cost of an expression before it runs: minimum and maximum, from the known sizes of its values.

A size is the number of characters, bytes, elements or entries. It comes from the text itself, from what functions say
about their results, or from the host by the path of a value. Otherwise it is unbounded, and so is the cost.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from devlet.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    StructLiteral,
)
from devlet.cel.checker import Checked
from devlet.cel.functions import UNBOUNDED, CallEstimate, Overload, Range, SizedNode
from devlet.cel.library.ranges import ANY_SIZE, ONE, plus, times
from devlet.cel.macros import ACCUMULATOR
from devlet.cel.recursion import with_room
from devlet.cel.types import DYN, Kind, Type

_FREE: Final = Range(0, 0)
_NEW_LIST: Final = Range(10, 10)
_NEW_MAP: Final = Range(30, 30)
_NEW_STRUCT: Final = Range(40, 40)
_NOTHING: Final = Range(UNBOUNDED, 0)
"""The neutral element of `_union`."""

_SCALARS: Final = {Kind.BOOL, Kind.DOUBLE, Kind.DURATION, Kind.INT, Kind.TIMESTAMP, Kind.UINT}
_CONCATENATIONS: Final = {"add_string", "add_bytes", "add_list"}


class _Path:
    """How a value is reached from a variable.

    Paths share memory like slices in Go: two that continue the same path may share their last step, and then the later
    one counts for both. The cost of `m.all(k, v, v.all(k2, v2, ...))` depends on this.
    """

    __slots__ = ("_capacity", "_length", "_steps")

    def __init__(self, steps: list[str], length: int, capacity: int) -> None:
        self._steps = steps
        self._length = length
        self._capacity = capacity

    def then(self, step: str) -> "_Path":
        at = self._length
        if at < self._capacity:
            self._steps[at : at + 1] = [step]
            return _Path(self._steps, at + 1, self._capacity)
        return _Path([*self._steps[:at], step], at + 1, max(1, 2 * self._capacity))

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(self._steps[: self._length])


@dataclass(frozen=True, slots=True)
class _Entries:
    """The sizes of keys and values of a map, or of the index and the elements of a list."""

    kind: Kind
    key: Range
    value: Range


@dataclass(frozen=True, slots=True)
class _Variable:
    path: _Path
    size: Range | None
    entries: _Entries | None = None


def _no_path() -> _Path:
    return _Path([], 0, 0)


@with_room
def estimate(checked: Checked) -> Range:
    """Return the least and the most that the expression can cost; at most UNBOUNDED."""
    return _Estimate(checked).cost(checked.parsed.root)


def _union(ranges: Iterable[Range]) -> Range:
    all_of_them = list(ranges)
    return Range(min(r.min for r in all_of_them), max(r.max for r in all_of_them))


def _merged(a: _Entries | None, b: _Entries | None) -> _Entries | None:
    if a is None or b is None:
        return None
    return _Entries(a.kind, _union((a.key, b.key)), _union((a.value, b.value)))


def _is_scalar(t: Type) -> bool:
    if t.kind == Kind.OPAQUE and t.name == "optional_type":
        return _is_scalar(t.params[0])
    return t.kind in _SCALARS


def _written_size(node: Expr) -> Range | None:
    match node:
        case Literal(value=str() | bytes() as text):
            return Range(len(text), len(text))
        case Literal():
            return ONE
        case ListLiteral():
            return Range(len(node.elements), len(node.elements))
        case MapLiteral():
            return Range(len(node.entries), len(node.entries))
        case _:
            return None


class _Estimate:
    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._paths: dict[int, _Path] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, _Entries] = {}
        self._scopes: dict[str, list[_Variable]] = {}

    def cost(self, node: Expr) -> Range:
        match node:
            case Literal():
                return _FREE
            case Ident():
                variable = self._local(node)
                self._paths[node.id] = variable.path if variable else _no_path().then(node.name)
                return ONE
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case StructLiteral():
                return plus(_NEW_STRUCT, *(self.cost(field.value) for field in node.fields))
            case Comprehension():
                return self._bind(node) if _is_bind(node) else self._loop(node)

    # What is known about a node

    def _type(self, node: Expr) -> Type:
        return self._checked.types.get(node.id, DYN)

    def _local(self, node: Expr) -> _Variable | None:
        scopes = self._scopes.get(node.name) if isinstance(node, Ident) else None
        return scopes[-1] if scopes else None

    def _path(self, node: Expr) -> _Path:
        variable = self._local(node)
        return variable.path if variable else self._paths.get(node.id) or _no_path()

    def _size(self, node: Expr) -> Range | None:
        known = self._sizes.get(node.id) or _written_size(node)
        if known:
            return known
        if (of_host := self._host_size(self._path(node).steps)) is not None:
            self._sizes[node.id] = of_host
            return of_host
        if _is_scalar(self._type(node)):
            return ONE
        variable = self._local(node)
        return variable.size if variable else None

    def _host_size(self, path: tuple[str, ...]) -> Range | None:
        return self._checked.environment.sizes(path) if path else None

    def _size_or_any(self, node: Expr) -> Range:
        return self._size(node) or ANY_SIZE

    def _entries_of(self, node: Expr) -> _Entries | None:
        if found := self._entries.get(node.id):
            return found
        variable = self._local(node)
        return variable.entries if variable else None

    def _note(self, node: Expr, size: Range | None, entries: _Entries | None) -> None:
        if size is not None:
            self._sizes[node.id] = size
        if entries is not None:
            self._entries[node.id] = entries

    def _sized(self, node: Expr) -> SizedNode:
        path = self._path(node).steps
        if path and path[0] in (ACCUMULATOR, "__result__"):
            path = ()
        literal = node.value if isinstance(node, Literal) else None
        items = self._host_size((*path, "@items")) if path else None
        return SizedNode(self._type(node), path, self._size(node), literal, isinstance(node, Literal), items)

    # Nodes

    def _select(self, node: Select) -> Range:
        cost = self.cost(node.operand)
        if node.is_test:
            return cost
        self._paths[node.id] = self._path(node.operand).then(node.field)
        is_charged = self._type(node.operand).kind in (Kind.MAP, Kind.OBJECT, Kind.PARAM)
        return plus(cost, ONE) if is_charged else cost

    def _list(self, node: ListLiteral) -> Range:
        costs, sizes = self._costs_and_sizes(node.elements)
        self._note(node, None, _Entries(Kind.LIST, ONE, sizes))
        return plus(_NEW_LIST, *costs)

    def _map(self, node: MapLiteral) -> Range:
        keys, key_sizes = self._costs_and_sizes([entry.key for entry in node.entries])
        values, value_sizes = self._costs_and_sizes([entry.value for entry in node.entries])
        self._note(node, None, _Entries(Kind.MAP, key_sizes, value_sizes))
        return plus(_NEW_MAP, *keys, *values)

    def _costs_and_sizes(self, nodes: Sequence[Expr]) -> tuple[list[Range], Range]:
        if not nodes:
            return [], Range(0, 0)
        found = [(self.cost(node), self._size_or_any(node)) for node in nodes]
        return [cost for cost, _ in found], _union([size for _, size in found])

    def _call(self, node: Call) -> Range:
        if node.function == "dyn":
            cost = self.cost(node.args[0])
            self._note(node, self._size(node.args[0]), self._entries_of(node.args[0]))
            return plus(ONE, cost)
        arg_costs: list[Range] = []
        args: list[SizedNode] = []
        for arg in node.args:
            arg_costs.append(self.cost(arg))
            args.append(self._sized(arg))
        reference = self._checked.references.get(node.id)
        if reference is None or not reference.overloads:
            return _FREE
        target_cost = _FREE
        target = None
        if node.target is not None:
            target_cost = self.cost(node.target)
            target = self._sized(node.target)
        costs = [_NOTHING]
        size: Range | None = None
        for overload in reference.overloads:
            call = self._overload(node, overload, target, args, arg_costs)
            costs.append(call.cost)
            size = self._result_size(node, overload, size, call.size)
        self._note(node, size, None)
        return plus(target_cost, _union(costs))

    def _result_size(self, node: Call, overload: str, before: Range | None, size: Range | None) -> Range | None:
        if overload in ("index_list", "index_map"):
            entries = self._entries_of(node.args[0])
            step = "@items" if overload == "index_list" else "@values"
            self._paths[node.id] = self._path(node.args[0]).then(step)
            return entries.value if entries else self._size(node)
        if size is not None:
            return _union((before, size)) if before else size
        return before or self._size(node)

    def _overload(
        self, node: Call, id: str, target: SizedNode | None, args: Sequence[SizedNode], arg_costs: Sequence[Range]
    ) -> CallEstimate:
        if id in ("logical_and", "logical_or"):
            left, right = arg_costs
            return CallEstimate(Range(left.min, plus(left, right).max))
        if id == "conditional":
            condition, then, otherwise = arg_costs
            self._note(node, None, _merged(self._entries_of(node.args[1]), self._entries_of(node.args[2])))
            size = _union(arg.size or ANY_SIZE for arg in args[1:])
            return CallEstimate(plus(condition, _union((then, otherwise))), size)
        if id in _CONCATENATIONS:
            self._note(node, None, _merged(self._entries_of(node.args[0]), self._entries_of(node.args[1])))
        estimator = self._estimator(node.function, id)
        own = estimator(target, args) if estimator else None
        call = own or CallEstimate(ONE)
        return CallEstimate(plus(call.cost, *arg_costs), call.size)

    def _estimator(self, function: str, id: str) -> Callable[..., CallEstimate | None] | None:
        declared = self._checked.environment.functions.get(function)
        overloads: Sequence[Overload] = declared.overloads if declared else ()
        return next((overload.estimate for overload in overloads if overload.id == id), None)

    # Loops

    def _loop(self, node: Comprehension) -> Range:
        before = plus(self.cost(node.range), self.cost(node.init))
        self._push(node.accumulator, self._variable_of(node.init))
        self._push_iteration(node)
        each_time = plus(self.cost(node.condition), self.cost(node.step))
        self._pop(node.variable)
        if node.variable2:
            self._pop(node.variable2)
        result = self.cost(node.result)
        self._pop(node.accumulator)
        count = self._size_or_any(node.range)
        self._note_loop(node, count)
        return plus(before, result, times(count, each_time))

    def _note_loop(self, node: Comprehension, count: Range) -> None:
        match node.init:
            case Literal():
                self._note(node, self._size(node.init), None)
            case ListLiteral() | MapLiteral():
                self._note(node, count, self._entries_of(node.step))

    def _bind(self, node: Comprehension) -> Range:
        cost = plus(self.cost(node.range), self.cost(node.init))
        self._push(node.accumulator, self._variable_of(node.init))
        cost = plus(cost, self.cost(node.result))
        self._pop(node.accumulator)
        self._note(node, self._size(node.result), self._entries_of(node.result))
        return cost

    def _variable_of(self, value: Expr) -> _Variable:
        return _Variable(self._path(value), self._size(value), self._entries_of(value))

    def _push_iteration(self, node: Comprehension) -> None:
        is_list = self._is_list(node.range)
        if not node.variable2:
            self._push(node.variable, self._element(node.range) if is_list else self._key(node.range))
            return
        self._push(node.variable, self._key(node.range))
        self._push(node.variable2, self._element(node.range))

    def _is_list(self, over: Expr) -> bool:
        entries = self._entries_of(over)
        return (entries.kind if entries else self._type(over).kind) == Kind.LIST

    def _key(self, over: Expr) -> _Variable:
        entries = self._entries_of(over)
        step = "@indices" if self._is_list(over) else "@keys"
        return _Variable(self._path(over).then(step), entries.key if entries else None)

    def _element(self, over: Expr) -> _Variable:
        entries = self._entries_of(over)
        step = "@items" if self._is_list(over) else "@values"
        return _Variable(self._path(over).then(step), entries.value if entries else None)

    def _push(self, name: str, variable: _Variable) -> None:
        self._scopes.setdefault(name, []).append(variable)

    def _pop(self, name: str) -> None:
        self._scopes[name].pop()


def _is_bind(node: Comprehension) -> bool:
    """Return whether the comprehension over an empty list comes from `cel.bind` or `optMap`."""
    return (
        isinstance(node.range, ListLiteral)
        and not node.range.elements
        and isinstance(node.condition, Literal)
        and node.condition.value is False
        and node.accumulator != "__result__"
    )
