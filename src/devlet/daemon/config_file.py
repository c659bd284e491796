"""The configuration file: versioned YAML, read key by key with the line of each value.

The document is walked as a tree of nodes instead of being loaded as values. That keeps line numbers, detects duplicate
keys, and never expands aliases.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from devlet.errors import InvalidInput

API_VERSION = "devlet.dev/v1alpha1"
KIND = "Configuration"

_MAX_BYTES = 256 * 1024
_MAX_DEPTH = 16  # of a value in a list
_HEADER = ("apiVersion", "kind")


@dataclass(frozen=True, slots=True)
class Setting:
    """A value with its place. The value is a YAML scalar, a tuple of settings with mappings of plain values for a list,
    or a dict of settings with scalars for a mapping."""

    value: Any
    place: str  # FILE:LINE


def read(
    path: Path, known: Sequence[str], lists: Collection[str] = (), mappings: Collection[str] = ()
) -> dict[str, Setting]:
    """Read the settings by dotted name (`timeouts.stop`). A name that is not `known` is an error.

    Names in `lists` have lists of mappings, names in `mappings` have arbitrary keys, and all others single values."""
    return parse(_text(path), str(path), known, lists, mappings)


def parse(
    text: str, origin: str, known: Sequence[str], lists: Collection[str] = (), mappings: Collection[str] = ()
) -> dict[str, Setting]:
    """Parse text as `read` does; `origin` names it in errors."""
    settings: dict[str, Setting] = {}
    sections = {name.rpartition(".")[0] for name in known} - {""}
    for name, node in _settings(_compose(text, origin), origin, sections):
        place = _place(origin, node)
        if name not in known and name not in _HEADER:
            raise InvalidInput(f"{place}: {_unknown(name, [*_HEADER, *known])}")
        if name in settings:
            raise InvalidInput(f"{place}: {name} is set twice")
        settings[name] = Setting(_value(node, name, origin, lists, mappings), place)
    _check_header(settings, origin)
    return {name: setting for name, setting in settings.items() if name not in _HEADER}


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise InvalidInput(f"{path}: larger than {_MAX_BYTES} bytes, the limit for a configuration file")
        return content.decode()
    except OSError as e:
        raise InvalidInput(f"{path}: {e.strerror or e}") from e
    except UnicodeDecodeError as e:
        raise InvalidInput(f"{path}: not UTF-8 text: {e.reason} at byte {e.start}") from e


def _compose(text: str, origin: str) -> yaml.Node:
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as e:
        line = f":{e.problem_mark.line + 1}" if e.problem_mark else ""
        raise InvalidInput(f"{origin}{line}: not valid YAML: {e.problem}") from e
    except yaml.YAMLError as e:
        raise InvalidInput(f"{origin}: not valid YAML: {str(e).splitlines()[0]}") from e
    except RecursionError as e:
        raise InvalidInput(f"{origin}: nested too deeply") from e
    if node is None:
        raise InvalidInput(f"{origin}: empty; expected apiVersion: {API_VERSION} and kind: {KIND}")
    return node


def _settings(node: yaml.Node, origin: str, sections: set[str], prefix: str = "") -> Iterator[tuple[str, yaml.Node]]:
    """Yield each key with its value; the keys of a section are prefixed with its name."""
    if not isinstance(node, yaml.MappingNode):
        raise InvalidInput(f"{_place(origin, node)}: {prefix.rstrip('.') or 'the file'} must be a mapping of keys")
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise InvalidInput(f"{_place(origin, key)}: a key must be a string")
        name = prefix + key.value
        if name in sections:
            yield from _settings(value, origin, sections, f"{name}.")
        else:
            yield name, value


def _value(node: yaml.Node, name: str, origin: str, lists: Collection[str], mappings: Collection[str]) -> Any:
    if name in lists:
        return _items(node, name, origin)
    return _entries(node, name, origin) if name in mappings else _scalar(node, name, _place(origin, node))


def _scalar(node: yaml.Node, name: str, place: str) -> Any:
    if not isinstance(node, yaml.ScalarNode):
        raise InvalidInput(f"{place}: {name} must be a single value")
    try:
        value = yaml.SafeLoader("").construct_object(node)
    except (yaml.YAMLError, ValueError, OverflowError) as e:
        raise InvalidInput(f"{place}: {name}: {node.value!r} is not a value") from e
    if value is None:
        raise InvalidInput(f"{place}: {name} has no value")
    return value


def _items(node: yaml.Node, name: str, origin: str) -> tuple[Setting, ...]:
    if not isinstance(node, yaml.SequenceNode):
        raise InvalidInput(f"{_place(origin, node)}: {name} must be a list")
    values = _Values(origin)
    return tuple(values.item(item, f"{name}[{index}]") for index, item in enumerate(node.value))


def _entries(node: yaml.Node, name: str, origin: str) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for entry, value in _settings(node, origin, set(), f"{name}."):
        place, key = _place(origin, value), entry.removeprefix(f"{name}.")
        if key in found:
            raise InvalidInput(f"{place}: {entry} is set twice")
        found[key] = Setting(_scalar(value, entry, place), place)
    return found


class _Values:
    """Builds plain values from nodes. A node that occurs twice is an alias, which could expand without end."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._seen: set[int] = set()

    def item(self, node: yaml.Node, name: str) -> Setting:
        place = _place(self._origin, node)
        if not isinstance(node, yaml.MappingNode):
            raise InvalidInput(f"{place}: {name} must be a mapping of keys")
        return Setting(self._value(node, name, _MAX_DEPTH), place)

    def _value(self, node: yaml.Node, name: str, depth: int) -> Any:
        place = _place(self._origin, node)
        if id(node) in self._seen:
            raise InvalidInput(f"{place}: {name}: aliases are not supported here: write the value again")
        self._seen.add(id(node))
        if not depth:
            raise InvalidInput(f"{place}: {name[:80]}: nested too deeply")
        match node:
            case yaml.MappingNode():
                return self._mapping(node, name, depth)
            case yaml.SequenceNode():
                return [self._value(item, f"{name}[{index}]", depth - 1) for index, item in enumerate(node.value)]
        return _scalar(node, name, place)

    def _mapping(self, node: yaml.MappingNode, name: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            place = _place(self._origin, key)
            if not isinstance(key, yaml.ScalarNode):
                raise InvalidInput(f"{place}: a key must be a string")
            if key.value in found:
                raise InvalidInput(f"{place}: {name}.{key.value} is set twice")
            found[key.value] = self._value(value, f"{name}.{key.value}", depth - 1)
        return found


def _check_header(settings: dict[str, Setting], origin: str) -> None:
    for name, expected in zip(_HEADER, (API_VERSION, KIND), strict=True):
        setting = settings.get(name)
        if setting is None:
            raise InvalidInput(f"{origin}: {name} is missing; expected {name}: {expected}")
        if setting.value != expected:
            raise InvalidInput(f"{setting.place}: {name} is {setting.value!r}; expected {expected}")


def _unknown(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.0)
    return f'unknown key "{name[:80]}"; did you mean "{near[0]}"?'


def _place(origin: str, node: yaml.Node) -> str:
    return f"{origin}:{node.start_mark.line + 1}"
