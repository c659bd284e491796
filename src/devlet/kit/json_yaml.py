"""YAML with the types of JSON and nothing else, in one pass over the events.

Time and memory grow with the length of the text, whatever is in it. What YAML has beyond JSON is an error: aliases
(with which a few lines can stand for gigabytes), merge keys, sets, ordered mappings, binary data and types of a
programming language. Numbers are decimal, octal, hexadecimal or binary. YAML 1.1 also reads `1:30` as 90, which takes
quadratic time; here `1:30` is a string, like dates. `yes`, `no`, `on` and `off` are booleans, as in Kubernetes.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from devlet.kit.yaml_depth import MAX_DEPTH

__all__ = ["MAX_DUPLICATES", "MAX_NUMBER", "Loaded", "TooManyContainers", "load"]

MAX_DUPLICATES = 100  # keys that occur twice; further ones are not listed
MAX_NUMBER = 400  # characters

_Loader: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_WORDS: dict[str, bool | None] = {
    form: value
    for word, value in {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}.items()
    for form in (word, word.capitalize(), word.upper())
} | dict.fromkeys(("", "~", "null", "Null", "NULL"))
_NUMERIC = frozenset("0123456789+-.")

_decimal = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)").fullmatch
_based = re.compile(r"([-+]?)0(?:(b)(?=[01_]+$)|(x)|o?(?=[0-7_]+$))([0-9a-fA-F_]+)").fullmatch
_float = re.compile(r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*\.[0-9_]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?").fullmatch
_not_json = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)").fullmatch


@dataclass(frozen=True, slots=True)
class Loaded:
    """`duplicates` are the paths of keys that occur twice in one mapping; the last one counts."""

    value: Any
    duplicates: tuple[str, ...] = ()


class TooManyContainers(yaml.YAMLError):
    """The text has more mappings and lists than the caller allows."""


def load(text: bytes | str, *, max_containers: int = 1 << 30) -> Loaded:
    """Read the only document of the text. Raise YAMLError if it is invalid, not alone, or beyond JSON."""
    builder = _Builder(max_containers)
    for event in yaml.parse(text, Loader=_Loader):
        act = _ACTS.get(type(event))
        if act is not None:
            act(builder, event)
    return Loaded(builder.value, tuple(builder.duplicates))


class _Open:
    """A mapping or list that is not complete. In a mapping, `key` came last, and may still lack its value."""

    __slots__ = ("awaits_value", "is_mapping", "key", "value")

    def __init__(self, value: Any, *, is_mapping: bool) -> None:
        self.value = value
        self.is_mapping = is_mapping
        self.key = ""
        self.awaits_value = False

    @property
    def awaits_key(self) -> bool:
        return self.is_mapping and not self.awaits_value

    @property
    def step(self) -> str:
        """Return the part of a path from this container to its last entry."""
        return f".{self.key}" if self.is_mapping else f"[{len(self.value) - 1}]"


class _Builder:
    def __init__(self, max_containers: int) -> None:
        self.value: Any = None
        self._left = max_containers
        self._max_containers = max_containers
        self.duplicates: list[str] = []
        self._open: list[_Open] = []
        self._documents = 0

    def document(self, event: yaml.DocumentStartEvent) -> None:
        self._documents += 1
        if self._documents > 1:
            raise _error("expected a single document", event)

    def scalar(self, event: yaml.ScalarEvent) -> None:
        inner = self._open[-1] if self._open else None
        if inner is not None and inner.awaits_key:
            self._take_key(inner, event)
        else:
            self._add(_scalar(event))

    def start_mapping(self, event: yaml.MappingStartEvent) -> None:
        self._start(event, _Open({}, is_mapping=True), "tag:yaml.org,2002:map")

    def start_list(self, event: yaml.SequenceStartEvent) -> None:
        self._start(event, _Open([], is_mapping=False), "tag:yaml.org,2002:seq")

    def end(self, _: yaml.Event) -> None:
        self._open.pop()

    def alias(self, event: yaml.AliasEvent) -> None:
        raise _error("aliases are not allowed", event)

    def _start(self, event: yaml.CollectionStartEvent, new: _Open, tag: str) -> None:
        if event.tag not in (None, "!", tag):
            raise _error(f"the tag {event.tag[:80]} is not supported", event)
        self._left -= 1
        if self._left < 0:
            raise TooManyContainers(f"limit is {self._max_containers} objects and lists")
        if len(self._open) >= MAX_DEPTH:
            raise yaml.YAMLError(f"nested more than {MAX_DEPTH} levels deep")
        inner = self._open[-1] if self._open else None
        if inner is not None and inner.awaits_key:
            raise _error("a key must be a string, a number or a boolean", event)
        self._add(new.value)
        self._open.append(new)

    def _take_key(self, inner: _Open, event: yaml.ScalarEvent) -> None:
        if event.value == "<<" and event.implicit[0]:
            raise _error("merge keys (<<) are not supported", event)
        key = _as_key(_scalar(event), event)
        inner.key, inner.awaits_value = key, True
        if key in inner.value and len(self.duplicates) < MAX_DUPLICATES:
            self.duplicates.append("".join(one.step for one in self._open).lstrip("."))

    def _add(self, value: Any) -> None:
        if not self._open:
            self.value = value
            return
        inner = self._open[-1]
        if inner.is_mapping:
            inner.value[inner.key] = value
            inner.awaits_value = False
        else:
            inner.value.append(value)


def _scalar(event: yaml.ScalarEvent) -> Any:
    text: str = event.value
    if event.tag is None or event.tag == "!":
        return _plain(text, event) if event.implicit[0] else text
    read = _TAGS.get(event.tag)
    if read is None:
        raise _error(f"the tag {event.tag[:80]} is not supported", event)
    value = read(text, event)
    if value is ...:
        raise _error(f"{text[:80]!r} does not fit its tag {event.tag}", event)
    return value


def _plain(text: str, event: yaml.Event) -> Any:
    """Return the value of a plain scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    if len(text) > MAX_NUMBER and (_decimal(text) or _based(text) or _float(text)):
        raise _error(f"a number has {len(text)} characters, more than {MAX_NUMBER}: quote it if it is a string", event)
    if _decimal(text):
        return _whole(int(text), text)
    if found := _based(text):
        base = 2 if found[2] else 16 if found[3] else 8
        digits = found[4].replace("_", "") or "0"
        return _whole(int(found[1] + digits, base), text)
    if _float(text):
        value = float(text.replace("_", ""))
        if math.isinf(value):
            raise _error(f"{text[:80]} is out of range", event)
        return value
    if _not_json(text):
        raise _error(f"{text} cannot be written in JSON", event)
    return text


def _whole(number: int, text: str) -> int | float | str:
    """Read an integer as Kubernetes does: one that does not fit in 64 bits is a float."""
    if -(1 << 63) <= number < 1 << 64:
        return number
    try:
        return float(number)
    except OverflowError:
        return text


def _as_key(value: Any, event: yaml.Event) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        raise _error("a key must not be null", event)
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def _typed(*types: type) -> Callable[[str, yaml.Event], Any]:
    def read(text: str, event: yaml.Event) -> Any:
        value = _plain(text, event)
        return value if type(value) in types else ...

    return read


def _error(text: str, event: yaml.Event) -> yaml.YAMLError:
    mark = event.start_mark
    return yaml.YAMLError(f"{text}, in line {mark.line + 1}, column {mark.column + 1}" if mark else text)


_TAGS: dict[str, Callable[[str, yaml.Event], Any]] = {
    "tag:yaml.org,2002:str": lambda text, _: text,
    "tag:yaml.org,2002:null": _typed(type(None)),
    "tag:yaml.org,2002:bool": _typed(bool),
    "tag:yaml.org,2002:int": _typed(int),
    "tag:yaml.org,2002:float": _typed(float, int),
}
_ACTS: dict[type, Callable[[_Builder, Any], None]] = {
    yaml.DocumentStartEvent: _Builder.document,
    yaml.ScalarEvent: _Builder.scalar,
    yaml.MappingStartEvent: _Builder.start_mapping,
    yaml.SequenceStartEvent: _Builder.start_list,
    yaml.MappingEndEvent: _Builder.end,
    yaml.SequenceEndEvent: _Builder.end,
    yaml.AliasEvent: _Builder.alias,
}
