"""Encode and decode CDI specs: JSON or YAML, independent of the name of the file.

Decoding is strict: a spec with an unknown field, a repeated field or an invalid value is refused. A null field counts
as missing. In YAML, a number may stand for a string (`name: 0`).
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
import yaml

from devlet.errors import InvalidInput
from devlet.kit import yaml_depth
from devlet.runtime.cdi.spec import Spec
from devlet.runtime.cdi.validation import problems

__all__ = ["decode", "encode"]

_SHOWN = 10  # problems in one error
_MAX_VALUES = 500_000  # in YAML, where aliases multiply them
_NUMBERS = {"major", "minor", "fileMode", "uid", "gid", "timeout", "additionalGids"}
_SWITCHES = {"enableMonitoring", "enableCMT", "enableMBM"}
_SafeLoader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def decode(content: bytes) -> Spec:
    """Raise InvalidInput if the spec is invalid; the error names the place."""
    try:
        spec = msgspec.convert(_plain(_parse(content)), type=Spec)
    except msgspec.ValidationError as e:
        raise InvalidInput(str(e).replace("`$.", "`")) from e
    if found := list(islice(problems(spec), _SHOWN + 1)):
        more = "; and more" if len(found) > _SHOWN else ""
        raise InvalidInput("; ".join(found[:_SHOWN]) + more)
    return spec


def encode(spec: Spec) -> bytes:
    """Encode as JSON. Raise InvalidInput if the spec is invalid."""
    if found := list(problems(spec)):
        raise InvalidInput("; ".join(found))
    return msgspec.json.format(msgspec.json.encode(spec, order="deterministic"), indent=2) + b"\n"


def _parse(content: bytes) -> Any:
    try:
        return _json(content) if content.lstrip()[:1] == b"{" else _yaml(content)
    except RecursionError as e:
        raise InvalidInput("nested too deeply") from e
    except yaml.MarkedYAMLError as e:
        line = f"line {e.problem_mark.line + 1}: " if e.problem_mark else ""
        raise InvalidInput(f"{line}not YAML: {e.problem}") from e
    except (yaml.YAMLError, ValueError) as e:
        raise InvalidInput(" ".join(str(e).split())) from e


def _json(content: bytes) -> Any:
    """Parse JSON, or a YAML document that begins with a brace."""
    try:
        return json.loads(content, object_pairs_hook=_once, parse_float=_fraction)
    except json.JSONDecodeError as e:
        try:
            return _yaml(content)
        except yaml.YAMLError:
            raise InvalidInput(f"line {e.lineno}: not JSON: {e.msg}") from e


def _fraction(text: str) -> int | str:
    """Return a number only if it is an integer: the format has no others."""
    value = float(text)
    if not math.isfinite(value):
        return text
    return int(value) if value.is_integer() and abs(value) < 1e21 else repr(value)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        (key, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise InvalidInput(f"field {key!r} occurs twice")
    return found


def _yaml(content: bytes) -> Any:
    yaml_depth.check(content)
    loader = _Loader(content)
    try:
        node = loader.get_single_node()
        _check_nodes(node)
        return loader.construct_document(node) if node is not None else None
    finally:
        loader.dispose()


def _check_nodes(top: yaml.Node | None) -> None:
    """Refuse repeated keys and too many values: with aliases, a few lines can expand to gigabytes, or without end."""
    for count, node in enumerate(_nodes(top)):
        if count >= _MAX_VALUES:
            raise yaml.YAMLError(f"more than {_MAX_VALUES} values")
        if isinstance(node, yaml.MappingNode):
            _once([(str(key.value), None) for key, _ in node.value])


def _nodes(top: yaml.Node | None) -> Iterator[yaml.Node]:
    waiting = [] if top is None else [top]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, yaml.MappingNode):
            waiting += [each for pair in node.value for each in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


class _Loader(_SafeLoader):  # type: ignore[misc]
    """YAML as Go reads it, with its own rules for numbers and booleans. Dates and the like are strings."""


_BOOL, _INT = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:int"
_KEPT = (_BOOL, "tag:yaml.org,2002:null")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in _KEPT]
    for first, resolvers in _SafeLoader.yaml_implicit_resolvers.items()
}
_NUMBER = re.compile(
    r"[-+]?(?:0[bB][01_]+|0[oO][0-7_]+|0[xX][0-9a-fA-F_]+|(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)$"
)
_BASES = {"0b": 2, "0o": 8, "0x": 16}


def _number(loader: Any, node: yaml.ScalarNode) -> int | str:
    text = str(node.value).replace("_", "")
    digits = text.lstrip("+-").lower()
    octal = 8 if digits.startswith("0") and digits.strip("01234567") == "" else 10
    try:
        whole = int(text, _BASES.get(digits[:2], octal))
    except ValueError:
        return _fraction(text)
    return whole if abs(whole) < 2**64 else _fraction(text)


_Loader.add_implicit_resolver(_INT, _NUMBER, "-+.0123456789")
_Loader.add_constructor(_INT, _number)
_Loader.add_implicit_resolver(_BOOL, re.compile(r"[yYnN]$"), "yYnN")
_Loader.add_constructor(_BOOL, lambda loader, node: str(node.value).lower() in ("y", "yes", "true", "on"))


def _plain(value: Any, member: str = "") -> Any:
    """Drop nulls, and convert to strings where the format has strings."""
    match value:
        case dict():
            inner = "annotations" if member == "annotations" else ""
            return {_text(k): _plain(v, inner or _text(k)) for k, v in value.items() if v is not None}
        case list():
            return [_plain(each, member) for each in value]
        case str():
            return _text(value)
        case bool():
            return value if member in _SWITCHES else _text(value)
        case int() if member not in _NUMBERS:
            return str(value)
    return value


def _text(value: Any) -> str:
    """Return the value as a string that a container can have: valid Unicode without NUL."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if "\0" in text:
        raise InvalidInput(f"{text!r} contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as e:
        raise InvalidInput(f"{text!r} is not valid Unicode") from e
    return text
