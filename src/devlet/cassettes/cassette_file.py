"""A cassette as YAML or JSON text. Reading is strict and bounded, because the text may come from anywhere.

Aliases are rejected, because with them a few lines can expand to gigabytes.
"""

import json
import re
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from devlet.cassettes.cassette import API_VERSION, KIND, Cassette
from devlet.cassettes.rules import problems
from devlet.errors import DevletError, InvalidInput

__all__ = ["MAX_BYTES", "MAX_VALUES", "check_events", "decode", "document", "encode", "read"]

MAX_BYTES: Final = 64 << 20  # enough for the maximum number of devices, each with 32 attributes
MAX_VALUES: Final = (
    3_000_000  # keys, strings, numbers, lists and objects: each takes up to half a kilobyte while it is read
)
MAX_DEPTH: Final = 50
_SHOWN: Final = 10  # problems in one error

_SafeLoader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SafeDumper: type[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_STARTS = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_VALUES = (*_STARTS, yaml.ScalarEvent)
_ENDS = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


def read(path: Path) -> Cassette:
    """Read a cassette. Raises InvalidInput, with what is wrong and where, if it is not valid."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as e:
        raise InvalidInput(f"cannot read {path}: {e.strerror or e}") from e
    try:
        return decode(content)
    except DevletError as e:
        raise InvalidInput(f"{path}: {e}") from e


def decode(content: bytes) -> Cassette:
    if len(content) > MAX_BYTES:
        raise InvalidInput(f"larger than {MAX_BYTES >> 20} MiB, the limit for a cassette")
    found = _parsed(content)
    if _values(found) > MAX_VALUES:
        raise InvalidInput(f"more than {MAX_VALUES} values, the limit for a cassette")
    _check_head(found)
    try:
        cassette = msgspec.convert(found, type=Cassette)
    except msgspec.ValidationError as e:
        raise InvalidInput(str(e).replace("`$.", "`").replace("`$`", "the cassette")) from e
    if found_problems := list(problems(cassette)):
        more = f"; and {len(found_problems) - _SHOWN} more" if len(found_problems) > _SHOWN else ""
        raise InvalidInput("; ".join(found_problems[:_SHOWN]) + more)
    return cassette


def document(cassette: Cassette) -> dict[str, Any]:
    """Return the document as it is written, with apiVersion, kind, metadata and node first."""
    found: dict[str, Any] = msgspec.to_builtins(cassette)
    head = {"apiVersion": API_VERSION, "kind": KIND, "metadata": found.get("metadata", {}), "node": found["node"]}
    return {key: value for key, value in (head | found | head).items() if value not in ({}, [])}


def encode(cassette: Cassette, *, as_json: bool = False) -> bytes:
    """Encode a cassette. Raises InvalidInput if it could not be read back."""
    if found_problems := list(problems(cassette)):
        raise InvalidInput("; ".join(found_problems[:_SHOWN]))
    found = document(cassette)
    if _values(found) > MAX_VALUES:
        raise InvalidInput(f"the cassette has more than {MAX_VALUES} values, the limit for reading it")
    content = _json(found) if as_json else _yaml(found)
    if len(content) > MAX_BYTES:
        raise InvalidInput(f"the cassette is larger than {MAX_BYTES >> 20} MiB, the limit for reading it")
    return content


def _json(found: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"


def _yaml(found: Any) -> bytes:
    text: str = yaml.dump(found, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text.encode()


def _values(found: Any) -> int:
    """Count the values as `check_events` does."""
    count, rest = 0, [found]
    while rest:
        value = rest.pop()
        count += 1
        if isinstance(value, dict):
            count += len(value)
            rest += value.values()
        elif isinstance(value, list | tuple):
            rest += value
    return count


def _parsed(content: bytes) -> Any:
    if content.lstrip()[:1] == b"{":
        try:
            json.loads(content, object_pairs_hook=_check_keys)
            return msgspec.json.decode(content)
        except (ValueError, RecursionError):
            pass  # it may still be YAML, whose errors name the line
    try:
        check_events(content)
        return yaml.load(content, Loader=_Loader)
    except yaml.MarkedYAMLError as e:
        line = f"line {e.problem_mark.line + 1}: " if e.problem_mark else ""
        raise InvalidInput(f"{line}neither YAML nor JSON: {e.problem}") from e
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        raise InvalidInput(f"neither YAML nor JSON: {' '.join(str(e).split())[:200]}") from e


def _check_keys(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("duplicate key")


def check_events(content: bytes, most: int = MAX_VALUES) -> None:
    """Check limits before values are built, because libyaml recurses and crashes on documents nested too deeply."""
    depth = count = 0
    for event in yaml.parse(content, Loader=_SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError(f"aliases are not allowed: *{event.anchor}")
        depth += isinstance(event, _STARTS) - isinstance(event, _ENDS)
        count += isinstance(event, _VALUES)
        if count > most:
            raise yaml.YAMLError(f"more than {most} values, the limit for a cassette")
        if depth > MAX_DEPTH:
            raise yaml.YAMLError(f"nested more than {MAX_DEPTH} levels deep")


def _check_head(found: Any) -> None:
    """Check apiVersion and kind first, so that other or newer files are not reported as damaged."""
    if not isinstance(found, dict):
        raise InvalidInput(f"not a cassette: expected an object with apiVersion {API_VERSION} and kind {KIND}")
    if found.get("kind") != KIND:
        raise InvalidInput(f"not a cassette: kind is {str(found.get('kind'))[:100]!r}, expected {KIND!r}")
    if found.get("apiVersion") != API_VERSION:
        version = str(found.get("apiVersion"))[:100]
        raise InvalidInput(f"apiVersion {version!r} is not supported, expected {API_VERSION!r}")


class _Loader(_SafeLoader):  # type: ignore[misc]
    """A loader for which dates and `1:30` are strings."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping whose keys are strings as written, without duplicates."""
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.value in seen:
                raise yaml.MarkedYAMLError(problem="a key is a duplicate, or not a string", problem_mark=key.start_mark)
            seen.add(key.value)
            key.tag = "tag:yaml.org,2002:str"
        made: dict[Any, Any] = super().construct_mapping(node, deep)
        return made


_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("bool", "null")]
    for first, resolvers in _SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_INT, re.compile(r"[-+]?(?:0x[0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)$"), "-+0123456789")
_Dumper: Any = type("_Dumper", (_SafeDumper,), {"ignore_aliases": lambda self, data: True})
