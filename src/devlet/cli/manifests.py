"""Objects from `-f`: files, directories and standard input, in YAML or JSON, one or several in a file.

YAML is read as Kubernetes reads it: dates, times and `1:30` are strings, and so are all keys.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from devlet.cli.resources import Resource, Resources
from devlet.cli.session import Document
from devlet.errors import InvalidInput
from devlet.kit import yaml_depth

MAX_BYTES = 64 << 20
MAX_VALUES = 2_000_000  # in one document, aliases counted as often as they are used
SUFFIXES = (".yaml", ".yml", ".json")

_SafeLoader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SCALARS = (str, int, float, bool, type(None))


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object and its origin, as in `file.yaml, document 2`."""

    document: Document
    origin: str

    @property
    def api_version(self) -> str:
        return str(self.document["apiVersion"])

    @property
    def kind(self) -> str:
        return str(self.document["kind"])

    @property
    def name(self) -> str:
        return str(self.document["metadata"].get("name") or "")

    @property
    def namespace(self) -> str:
        return str(self.document["metadata"].get("namespace") or "")

    def place(self, resources: Resources, asked: str, default: str) -> tuple[Resource, str]:
        """Return the resource and the namespace; `asked` is that of `-n`, which must not contradict the object's."""
        resource = resources.of_kind(self.api_version, self.kind)
        if not resource.namespaced:
            return resource, ""
        if asked and self.namespace and asked != self.namespace:
            raise InvalidInput(
                f"{self.origin}: the object's namespace {self.namespace} does not match -n {asked}: leave one out"
            )
        return resource, self.namespace or asked or default


def read(sources: Sequence[str], *, recursive: bool = False) -> list[Manifest]:
    found = [m for source in sources for path, content in _contents(source, recursive) for m in parse(content, path)]
    if not found:
        raise InvalidInput(f"no objects found in {', '.join(sources)}")
    return found


def documents(sources: Sequence[str], *, recursive: bool = False) -> Iterator[tuple[Any, str]]:
    """Yield each document in the files, whether it is an object or not, with its origin."""
    for source in sources:
        for path, content in _contents(source, recursive):
            for number, document in enumerate(_documents(content, path), start=1):
                if document is not None:
                    yield document, f"{path}, document {number}"


def objects_in(document: Any, where: str) -> Iterator[Manifest]:
    """Yield the objects of a document, which may be a list."""
    return _manifests(document, where)


def parse(content: bytes, origin: str) -> Iterator[Manifest]:
    for number, document in enumerate(_documents(content, origin), start=1):
        where = f"{origin}, document {number}"
        if document is not None:
            yield from _manifests(document, where)


def _manifests(document: Any, where: str) -> Iterator[Manifest]:
    if not isinstance(document, dict):
        raise InvalidInput(f"{where}: not a Kubernetes object: expected a mapping with apiVersion and kind")
    kind = document.get("kind")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(document.get("items"), list):
        head = {} if kind == "List" else {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
        for index, item in enumerate(document["items"]):
            yield from _manifests(head | item if isinstance(item, dict) else item, f"{where}, items[{index}]")
        return
    for key in ("apiVersion", "kind"):
        if not isinstance(document.get(key), str) or not document[key]:
            raise InvalidInput(f"{where}: {key} is missing")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        raise InvalidInput(f"{where}: {document['kind']}: metadata.name is missing")
    yield Manifest(document, where)


def _contents(source: str, recursive: bool) -> Iterator[tuple[str, bytes]]:
    if source == "-":
        yield "standard input", _limited(sys.stdin.buffer.read(MAX_BYTES + 1), "standard input")
        return
    if source.startswith(("http://", "https://")):
        raise InvalidInput(f"{source}: -f does not accept URLs: download the file first, or pipe it into -f -")
    path = Path(source)
    try:
        files = _files(path, recursive) if path.is_dir() else [path]
        for file in files:
            with file.open("rb") as opened:
                yield str(file), _limited(opened.read(MAX_BYTES + 1), str(file))
    except OSError as e:
        raise InvalidInput(f"cannot read {e.filename or source}: {e.strerror or e}") from e


def _files(folder: Path, recursive: bool) -> list[Path]:
    found = folder.rglob("*") if recursive else folder.iterdir()
    files = sorted(path for path in found if path.suffix in SUFFIXES and path.is_file())
    if not files:
        raise InvalidInput(f"{folder}: no {', '.join(SUFFIXES)} files in this directory")
    return files


def _limited(content: bytes, origin: str) -> bytes:
    if len(content) > MAX_BYTES:
        raise InvalidInput(f"{origin}: larger than {MAX_BYTES} bytes")
    return content


def _documents(content: bytes, origin: str) -> Iterator[Any]:
    if content.lstrip()[:1] == b"{":
        try:
            yield json.loads(content)
            return
        except (ValueError, RecursionError):
            pass  # it may still be YAML, whose errors name the line
    try:
        yaml_depth.check(content)
        for document in yaml.load_all(content, Loader=_Loader):  # a SafeLoader
            budget = [MAX_VALUES]
            yield _checked(document, budget)
    except yaml.MarkedYAMLError as e:
        line = f":{e.problem_mark.line + 1}" if e.problem_mark else ""
        raise InvalidInput(f"{origin}{line}: invalid YAML: {e.problem}") from e
    except RecursionError as e:
        raise InvalidInput(f"{origin}: nested too deeply") from e
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as e:
        raise InvalidInput(f"{origin}: invalid YAML: {e}") from e


def _checked(value: Any, budget: list[int]) -> Any:
    budget[0] -= 1
    if budget[0] < 0:
        raise yaml.YAMLError(f"more than {MAX_VALUES} values")
    if isinstance(value, dict):
        return {key: _checked(item, budget) for key, item in value.items()}
    if isinstance(value, list):
        return [_checked(item, budget) for item in value]
    if not isinstance(value, _SCALARS) or value != value or value in (float("inf"), float("-inf")):
        raise yaml.YAMLError(f"a {type(value).__name__} that JSON cannot represent: {value!r}"[:200])
    return value


def _construct_mapping(loader: Any, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
    """Build a mapping whose keys are strings as written (`1`, `true`), without duplicates."""
    seen = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key is not a string", problem_mark=key.start_mark)
        if key.tag == "tag:yaml.org,2002:merge":
            continue
        if key.value in seen:
            raise yaml.MarkedYAMLError(problem=f'duplicate key "{key.value}"', problem_mark=key.start_mark)
        seen.add(key.value)
        key.tag = "tag:yaml.org,2002:str"
    mapping: dict[str, Any] = _SafeLoader.construct_mapping(loader, node, deep)
    return mapping


def _resolvers() -> dict[str, list[tuple[str, Any]]]:
    """Return the resolvers of YAML 1.1 without times, sexagesimal numbers and underscores in numbers."""
    numbers = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp"}
    kept = {
        c: [(t, r) for t, r in pairs if t not in numbers] for c, pairs in _SafeLoader.yaml_implicit_resolvers.items()
    }
    integer = re.compile(r"[-+]?(?:0b[01]+|0x[0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
    real = re.compile(
        r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
    )
    for character in "-+.0123456789":
        kept.setdefault(character, [])
        kept[character] += [
            ("tag:yaml.org,2002:int", re.compile(rf"(?:{integer.pattern})$")),
            ("tag:yaml.org,2002:float", re.compile(rf"(?:{real.pattern})$")),
        ]
    return kept


_Loader: Any = type(
    "_Loader",
    (_SafeLoader,),
    {"yaml_implicit_resolvers": _resolvers(), "construct_mapping": _construct_mapping},
)
