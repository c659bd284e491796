"""The part of kubectl's JSONPath that printer columns of custom resources use.

    .spec.replicas   .status.conditions[?(@.type=="Ready")].status   .items[0]   .list[*].name   .map['a.b']

A path finds a list of values, which is empty when something on the way is absent or of another shape. Ranges, unions
and `..` are not part of it: a path with one of these is no path, and the caller decides what to show instead.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from devlet.errors import InvalidInput

__all__ = ["JSONPath", "parse"]

MAX_LENGTH = 1_024

JSONPath = Callable[[Any], list[Any]]

_Step = Callable[[Any], Iterator[Any]]

_KEY = r"(?:[^.\[\]\\]|\\.)+"
_TEXT = r"""'[^']*'|"[^"]*\""""
_VALUE = rf"{_TEXT}|true|false|-?[0-9]{{1,15}}"
_FILTER = rf"@(?P<path>(?:\.[^.\[\]\\=!\s()]+)+)\s*(?P<operator>==|!=)\s*(?P<value>{_VALUE})"
_step = re.compile(
    rf"\.(?P<key>{_KEY})"
    rf"|\[(?P<quoted>{_TEXT})\]"
    rf"|\[(?P<index>-?[0-9]{{1,9}})\]"
    rf"|\[(?P<all>\*)\]"
    rf"|\[\?\(\s*{_FILTER}\s*\)\]"
)


def parse(path: str) -> JSONPath:
    """InvalidInput if it is not such a path. Braces around it, as kubectl has them, may be there or not."""
    if len(path) > MAX_LENGTH:
        raise InvalidInput(f"a JSONPath has at most {MAX_LENGTH} characters, this one has {len(path)}")
    steps = list(_steps(path.removeprefix("{").removesuffix("}").removeprefix("$")))

    def find(document: Any) -> list[Any]:
        values = [document]
        for step in steps:
            values = [found for value in values for found in step(value)]
        return values

    return find


def _steps(path: str) -> Iterator[_Step]:
    position = 0
    while position < len(path):
        if not (match := _step.match(path, position)):
            raise InvalidInput(f'"{path}" is not a JSONPath: unexpected "{path[position : position + 20]}"')
        yield _meaning(match)
        position = match.end()


def _meaning(match: "re.Match[str]") -> _Step:
    if match["all"]:
        return _all
    if match["index"]:
        return _index(int(match["index"]))
    if match["path"]:
        wanted = _literal(match["value"])
        return _filter(parse(match["path"]), wanted, match["operator"] == "==")
    if match["key"] == "*":
        return _all
    return _key(match["quoted"][1:-1] if match["quoted"] else re.sub(r"\\(.)", r"\1", match["key"]))


def _key(key: str) -> _Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and key in value:
            yield value[key]

    return step


def _index(index: int) -> _Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _all(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


def _filter(find: JSONPath, wanted: Any, equal: bool) -> _Step:
    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            found = find(item)
            if found and (found[0] == wanted) is equal:
                yield item

    return step


def _literal(text: str) -> Any:
    if text[0] in "'\"":
        return text[1:-1]
    return text == "true" if text in ("true", "false") else int(text)
