"""A variable or computed value with everything selected from it: `device.attributes["x"].?y` is one attribute.

Attributes exist for two reasons. An optional step makes the whole rest optional, and the reference charges the chain as
one: a unit for each field or index that is looked up and one for the attribute. After a conditional, fields are looked
up in the chosen branch, and the attribute itself is free.
"""

from collections.abc import Sequence
from typing import Protocol

from devlet.cel.cost import SELECT_COST
from devlet.cel.frames import AnyFrame
from devlet.cel.operators import ABSENT, find
from devlet.cel.reference_types import go_type
from devlet.cel.texts import key_text
from devlet.cel.values import NONE, CelError, Optional, Uint, Value

_KEYS = frozenset((str, int, Uint, bool, float))
_LANGUAGE = (dict, list, tuple, str, int, float, bytes, type(None))


class Step(Protocol):
    """A part of a plan. It returns a value, or a CelError as a value."""

    @property
    def id(self) -> int: ...

    def evaluate(self, frame: AnyFrame) -> Value: ...


class Qualifier(Protocol):
    id: int
    is_optional: bool

    def get(self, frame: AnyFrame, container: Value) -> Value:
        """Return the element, or an error."""

    def get_if_present(self, frame: AnyFrame, container: Value) -> Value:
        """Return the element, ABSENT, or an error."""


class Attribute(Protocol):
    @property
    def id(self) -> int: ...

    def add(self, qualifier: Qualifier) -> None: ...

    def resolve(self, frame: AnyFrame) -> Value: ...


class Variable:
    __slots__ = ("_id", "_name", "qualifiers")

    def __init__(self, id: int, name: str) -> None:
        self._id = id
        self._name = name
        self.qualifiers: list[Qualifier] = []

    @property
    def id(self) -> int:
        return self.qualifiers[-1].id if self.qualifiers else self._id

    def add(self, qualifier: Qualifier) -> None:
        self.qualifiers.append(qualifier)

    def resolve(self, frame: AnyFrame) -> Value:
        value = frame.find(self._name)
        if value is ABSENT:
            return CelError(f"no such attribute(s): {self._name}", self._id)
        if frame.tracker.trace is not None:
            frame.tracker.trace[self._id] = value
        return value if isinstance(value, CelError) else _qualified(frame, value, self.qualifiers)


class Computed:
    """A computed value, and the qualifiers selected from it."""

    __slots__ = ("_id", "_operand", "qualifiers")

    def __init__(self, id: int, operand: Step) -> None:
        self._id = id
        self._operand = operand
        self.qualifiers: list[Qualifier] = []

    @property
    def id(self) -> int:
        return self.qualifiers[-1].id if self.qualifiers else self._id

    def add(self, qualifier: Qualifier) -> None:
        self.qualifiers.append(qualifier)

    def resolve(self, frame: AnyFrame) -> Value:
        value = self._operand.evaluate(frame)
        return value if isinstance(value, CelError) else _qualified(frame, value, self.qualifiers)


class Conditional:
    """`condition ? truthy : falsy`."""

    __slots__ = ("_id", "condition", "falsy", "truthy")

    def __init__(self, id: int, condition: Step, truthy: Attribute, falsy: Attribute) -> None:
        self._id = id
        self.condition = condition
        self.truthy = truthy
        self.falsy = falsy

    @property
    def id(self) -> int:
        return self.truthy.id if self.truthy.id == self.falsy.id else self._id

    def add(self, qualifier: Qualifier) -> None:
        self.truthy.add(qualifier)
        self.falsy.add(qualifier)

    def resolve(self, frame: AnyFrame) -> Value:
        value = self.condition.evaluate(frame)
        if value is True:
            return self.truthy.resolve(frame)
        if value is False:
            return self.falsy.resolve(frame)
        return value if isinstance(value, CelError) else CelError("no such overload", self._id)


def _qualified(frame: AnyFrame, value: Value, qualifiers: Sequence[Qualifier]) -> Value:
    is_optional = False
    for qualifier in qualifiers:
        if type(value) is Optional:
            if not value.has_value:
                return NONE
            value, is_optional = value.value, True
        is_optional = is_optional or qualifier.is_optional
        value = qualifier.get_if_present(frame, value) if is_optional else qualifier.get(frame, value)
        if value is ABSENT:
            return NONE
        if isinstance(value, CelError):
            return value
    return Optional(value) if is_optional else value


class Constant:
    """A field, or a constant index. `host` is the Python name of the field, for host objects."""

    __slots__ = ("_host", "_key", "id", "is_optional")

    def __init__(self, id: int, key: Value, host: str = "", is_optional: bool = False) -> None:
        self.id = id
        self._key = key
        self._host = host
        self.is_optional = is_optional

    def find(self, container: Value) -> Value:
        """Return the element, ABSENT, or an error."""
        if self._host and not isinstance(container, _LANGUAGE):
            return getattr(container, self._host, ABSENT)
        return _found(container, self._key, self.id)

    def get(self, frame: AnyFrame, container: Value) -> Value:
        value = self.find(container)
        if value is ABSENT:
            value = _missing(container, self._key, self.id)
        frame.tracker.record(self.id, value, SELECT_COST)
        return value

    def get_if_present(self, frame: AnyFrame, container: Value) -> Value:
        value = self.find(container)
        if value is not ABSENT and not isinstance(value, CelError):
            frame.tracker.record(self.id, value, SELECT_COST)
        return value


class Presence:
    """The last qualifier inside `has()`."""

    __slots__ = ("_field", "id", "is_optional")

    def __init__(self, field: Constant) -> None:
        self.id = field.id
        self.is_optional = False
        self._field = field

    def get(self, frame: AnyFrame, container: Value) -> Value:
        value = self._field.find(container)
        if not isinstance(value, CelError):
            value = value is not ABSENT
        frame.tracker.record(self.id, value, SELECT_COST)
        return value

    def get_if_present(self, frame: AnyFrame, container: Value) -> Value:
        return self._field.get_if_present(frame, container)


class Dynamic:
    """An index that is itself an attribute."""

    __slots__ = ("_attribute", "_forgets", "id", "is_optional")

    def __init__(self, id: int, attribute: Attribute, is_optional: bool, forgets: bool) -> None:
        self.id = id
        self.is_optional = is_optional
        self._attribute = attribute
        self._forgets = forgets

    def get(self, frame: AnyFrame, container: Value) -> Value:
        key, value = self._find(frame, container)
        if value is ABSENT:
            value = _missing(container, key, self.id)
        self._record(frame, value)
        return value

    def get_if_present(self, frame: AnyFrame, container: Value) -> Value:
        _, value = self._find(frame, container)
        if value is not ABSENT and not isinstance(value, CelError):
            self._record(frame, value)
        return value

    def _find(self, frame: AnyFrame, container: Value) -> tuple[Value, Value]:
        key = self._attribute.resolve(frame)
        if isinstance(key, CelError):
            return None, key
        if type(key) not in _KEYS:
            return None, CelError(invalid_qualifier(key), self.id)
        return key, _found(container, key, self.id)

    def _record(self, frame: AnyFrame, value: Value) -> None:
        if self._forgets:
            frame.tracker.drop((self.id,))
        frame.tracker.record(self.id, value, SELECT_COST)


def is_key(value: Value) -> bool:
    """Return whether the value can be a key of a list or map."""
    return type(value) in _KEYS


def invalid_qualifier(key: Value) -> str:
    return f"invalid qualifier type: {go_type(key)}"


def _found(container: Value, key: Value, node: int) -> Value:
    try:
        return find(container, key)
    except CelError as error:
        return CelError(error.message, node)


def _missing(container: Value, key: Value, node: int) -> CelError:
    what = "index out of bounds" if isinstance(container, list | tuple) else "no such key"
    return CelError(f"{what}: {key_text(key)}", node)
