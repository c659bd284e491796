"""Prepare an expression for evaluation: compute constants, choose overloads, and join selections into attributes.

Planning has two visible effects. Values computed here are free at run time: lists and maps of constants, conversions
such as `int("1")`, `in` with a constant list. A failure here, such as `int("x")` or an invalid regular expression,
makes the expression unusable (PlanError), while `1 / 0` fails only when it is reached.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from devlet.cel import ast, dispatch, messages
from devlet.cel.attributes import (
    Attribute,
    Computed,
    Conditional,
    Constant,
    Dynamic,
    Presence,
    Step,
    Variable,
    invalid_qualifier,
    is_key,
)
from devlet.cel.checker import Checked
from devlet.cel.constructors import Constructor, list_of_parts, map_of_parts, message_of_parts
from devlet.cel.fold import Fold
from devlet.cel.functions import Overload
from devlet.cel.issues import NOWHERE, CompileError, Issue
from devlet.cel.membership import Members, members
from devlet.cel.operators import equal, not_equal
from devlet.cel.recursion import with_room
from devlet.cel.steps import (
    AttributeStep,
    Call,
    ConstantStep,
    Logic,
    OptionalOr,
    PresenceStep,
    SetStep,
)
from devlet.cel.types import Kind, unwrap_optional
from devlet.cel.values import CelError, Value

_CONVERSIONS: Final = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)
_REGEX: Final = frozenset(("matches", "find", "findAll"))
_NOT_STRICT: Final = frozenset(("@not_strictly_false", "__not_strictly_false__"))
_STOPS_EARLY: Final = frozenset(("string_format",))


class PlanError(CompileError):
    """The expression is correct but cannot be used. The text is the bare message, without a place."""

    def __init__(self, source: str, message: str, offset: int) -> None:
        super().__init__(source, [Issue(message, offset)])
        self.args = (message,)


@dataclass(frozen=True)
class Plan:
    """The plan. `constants` are the known values of nodes, including errors that occur whenever the node is reached.

    `sets` has the members of the constant lists of `x in [...]`, by the id of the call.
    """

    checked: Checked
    root: Step
    depth: int
    """The depth of the tree."""
    constants: Mapping[int, Value] = field(default_factory=dict)
    sets: Mapping[int, Members] = field(default_factory=dict)
    makes_patterns: bool = False
    """Whether the expression builds regular expressions while it runs."""


@with_room
def plan(checked: Checked) -> Plan:
    """Plan an expression. Raises PlanError."""
    planner = _Planner(checked)
    root, depth = planner.plan_all()
    return Plan(checked, root, depth, planner.constants, planner.sets, planner.makes_patterns)


def _parts(node: ast.Expr) -> tuple[ast.Expr, ...]:
    match node:
        case ast.Select():
            return (node.operand,)
        case ast.Call():
            return (node.target, *node.args) if node.target else node.args
        case ast.ListLiteral():
            return node.elements
        case ast.MapLiteral():
            return tuple(part for entry in node.entries for part in (entry.key, entry.value))
        case ast.StructLiteral():
            return tuple(struct_field.value for struct_field in node.fields)
        case ast.Comprehension():
            return (node.init, node.range, node.condition, node.step, node.result)
    return ()


class _Planner:
    """Plans from the leaves to the root without recursion, because trees may be deeper than Python's stack."""

    def __init__(self, checked: Checked) -> None:
        self.constants: dict[int, Value] = {}
        self.sets: dict[int, Members] = {}
        self.makes_patterns = False
        self._checked = checked
        self._functions = checked.environment.functions

    def plan_all(self) -> tuple[Step, int]:
        made: list[tuple[Step, int]] = []
        for node in _leaves_first(self._checked.parsed.root, self._inside):
            count = len(self._inside(node))
            parts = made[len(made) - count :]
            del made[len(made) - count :]
            step = self._step(node, [part for part, _ in parts])
            if isinstance(step, ConstantStep):
                self.constants[node.id] = step.value
            made.append((step, 1 + max((depth for _, depth in parts), default=0)))
        return made[0]

    def _inside(self, node: ast.Expr) -> tuple[ast.Expr, ...]:
        return () if isinstance(node, ast.Select) and node.id in self._checked.references else _parts(node)

    def _step(self, node: ast.Expr, parts: list[Step]) -> Step:
        match node:
            case ast.Literal():
                return ConstantStep(node.id, node.value)
            case ast.Ident():
                return self._name(node.id, node.name)
            case ast.Select():
                return self._select(node, parts[0]) if parts else self._name(node.id, node.field)
            case ast.Call():
                return self._call(node, parts)
            case ast.ListLiteral():
                return _folded(list_of_parts(node.id, parts, node.optionals), parts)
            case ast.MapLiteral():
                optionals = frozenset(i for i, entry in enumerate(node.entries) if entry.optional)
                return _folded(map_of_parts(node.id, parts, optionals), parts)
            case ast.StructLiteral():
                return message_of_parts(node.id, parts, _maker(node))
            case ast.Comprehension():
                init, over, condition, step, result = parts
                names = (node.accumulator, node.variable, node.variable2)
                return Fold(node.id, names, over, init, condition, step, result)

    # Names and attributes

    def _name(self, id: int, written: str) -> Step:
        reference = self._checked.references.get(id)
        name = reference.name if reference and reference.name else written
        if reference and reference.value is not None:
            return ConstantStep(id, reference.value)
        if self._checked.types[id].kind is Kind.TYPE:
            raise self._error(id, f"reference to undefined type: {name}")
        return AttributeStep(Variable(id, name))

    def _select(self, node: ast.Select, operand: Step) -> Step:
        attribute = _attribute(operand)
        qualifier = Constant(node.id, node.field, self._host_name(node.operand, node.field))
        if node.is_test:
            attribute.add(Presence(qualifier))
            return PresenceStep(node.id, attribute)
        attribute.add(qualifier)
        return AttributeStep(attribute)

    def _index(self, node: ast.Call, parts: Sequence[Step], is_optional: bool) -> Step:
        attribute, index = _attribute(parts[0]), parts[1]
        if isinstance(index, ConstantStep):
            if not is_key(index.value):
                raise self._error(node.id, invalid_qualifier(index.value))
            attribute.add(Constant(node.id, index.value, self._host_name(node.args[0], str(index.value)), is_optional))
        elif isinstance(index, AttributeStep):
            attribute.add(Dynamic(node.id, index.attribute, is_optional, forgets=False))
        else:
            attribute.add(Dynamic(node.id, Computed(node.id, index), is_optional, forgets=True))
        return AttributeStep(attribute)

    def _host_name(self, operand: ast.Expr, name: str) -> str:
        """Return the Python name of a host object's field; empty if the operand is not such an object."""
        operand_type, _ = unwrap_optional(self._checked.types[operand.id])
        objects = self._checked.environment.objects
        possible = objects.values() if operand_type.is_dyn else [objects.get(operand_type.name, {})]
        return next((fields[name].attribute for fields in possible if name in fields), "")

    # Calls

    def _call(self, node: ast.Call, parts: list[Step]) -> Step:
        match node.function:
            case "_&&_":
                return Logic(node.id, False, parts)
            case "_||_":
                return Logic(node.id, True, parts)
            case "_?_:_":
                condition, truthy, falsy = parts
                return AttributeStep(Conditional(node.id, condition, _attribute(truthy), _attribute(falsy)))
            case "_==_":
                return Call(node.id, parts, equal, self._functions["_==_"].overloads[0].cost)
            case "_!=_":
                return Call(node.id, parts, not_equal, self._functions["_!=_"].overloads[0].cost)
            case "_[_]":
                return self._index(node, parts, False)
            case "_[?_]" | "_?._":
                return self._index(node, parts, True)
            case "or" | "orValue" if len(parts) == 2:
                return OptionalOr(node.id, parts[0], parts[1], unwraps=node.function == "orValue")
        return self._function(node, parts)

    def _function(self, node: ast.Call, parts: list[Step]) -> Step:
        function = self._functions[node.function]
        chosen = self._chosen(node)
        if chosen and chosen.id == "in_list" and (step := self._in_set(node, parts)):
            return step
        call = Call(
            node.id,
            parts,
            dispatch.implementation(function, chosen),
            dispatch.cost(function, chosen),
            stops_early=self._stops_early(node, chosen, len(parts)),
            is_strict=node.function not in _NOT_STRICT,
        )
        if node.function in _CONVERSIONS and len(parts) == 1 and isinstance(parts[0], ConstantStep):
            return self._converted(call, parts[0])
        if node.function in _REGEX and _is_text(parts[1]):
            return self._matching(node, parts, call, chosen)
        self.makes_patterns = self.makes_patterns or node.function in _REGEX
        return call

    def _chosen(self, node: ast.Call) -> Overload | None:
        ids = self._checked.references[node.id].overloads
        overloads = self._functions[node.function].overloads
        return next((overload for overload in overloads if overload.id in ids), None) if len(ids) == 1 else None

    def _stops_early(self, node: ast.Call, chosen: Overload | None, count: int) -> bool:
        """Return whether a failed argument stops evaluation. The reference evaluates all arguments of some calls with
        one or two, and not of others."""
        if count > 2 or (chosen and chosen.id in _STOPS_EARLY):
            return True
        function = self._functions[node.function]
        return not chosen and not function.dispatch and len(function.overloads) > 1

    def _in_set(self, node: ast.Call, parts: Sequence[Step]) -> Step | None:
        element, container = parts
        if not isinstance(container, ConstantStep) or not isinstance(container.value, list):
            return None
        if not container.value:
            return ConstantStep(node.id, False)
        found = members(container.value)
        if found is None:
            return None
        self.sets[node.id] = found
        return SetStep(node.id, element, found)

    def _converted(self, call: Call, argument: ConstantStep) -> Step:
        value = argument.value if isinstance(argument.value, CelError) else call.fold([argument.value])
        if isinstance(value, CelError):
            raise self._error(call.id, value.message)
        return ConstantStep(call.id, value, argument.all_parts)

    def _matching(self, node: ast.Call, parts: Sequence[Step], call: Call, chosen: Overload | None) -> Step:
        """Plan `matches`. An invalid pattern is reported here. A pattern that is not a string gets a shorter message
        than usual."""
        pattern = parts[1]
        assert isinstance(pattern, ConstantStep)
        probe = call.fold(["", pattern.value, *[0 for _ in parts[2:]]])
        if isinstance(probe, CelError):
            raise self._error(node.id, probe.message.removeprefix("Illegal regex: "))
        function = self._functions[node.function]
        search = _on_text(dispatch.implementation(function, chosen))
        return Call(node.id, parts, search, dispatch.cost(function, chosen), stops_early=True)

    def _error(self, id: int, message: str) -> PlanError:
        source = self._checked.parsed.source
        return PlanError(source.text, message, source.positions.get(id, NOWHERE))


def _leaves_first(root: ast.Expr, inside: Callable[[ast.Expr], tuple[ast.Expr, ...]]) -> Iterator[ast.Expr]:
    stack: list[tuple[ast.Expr, Iterator[ast.Expr]]] = [(root, iter(inside(root)))]
    while stack:
        node, rest = stack[-1]
        if (part := next(rest, None)) is None:
            stack.pop()
            yield node
        else:
            stack.append((part, iter(inside(part))))


def _attribute(operand: Step) -> Attribute:
    return operand.attribute if isinstance(operand, AttributeStep) else Computed(operand.id, operand)


def _folded(step: Constructor, parts: Sequence[Step]) -> Step:
    constants = [part for part in parts if isinstance(part, ConstantStep)]
    if len(constants) != len(parts):
        return step
    values = [part.value for part in constants]
    failure = next((value for value in values if isinstance(value, CelError)), None)
    inner = [pair for part in constants for pair in part.all_parts]
    return ConstantStep(step.id, failure or step.fold(values), inner)


def _on_text(search: Callable[..., Value]) -> Callable[..., Value]:
    def call(text: Value, pattern: str, *count: Value) -> Value:
        if not isinstance(text, str) or any(type(number) is not int for number in count):
            raise CelError("no such overload")
        return search(text, pattern, *count)

    return call


def _is_text(step: Step) -> bool:
    return isinstance(step, ConstantStep) and isinstance(step.value, str)


def _maker(node: ast.StructLiteral) -> Callable[[Sequence[Value]], Value]:
    names = [struct_field.name for struct_field in node.fields]
    return lambda values: messages.make(node.type_name, dict(zip(names, values, strict=True)))
