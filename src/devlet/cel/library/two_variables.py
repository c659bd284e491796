"""Functions behind the macros `transformMap` and `transformMapEntry`: they insert entries into the map under
construction.

The map grows in place, because otherwise building it would take quadratic time. That is invisible to the user: names
with an `@` cannot be written, and the first insertion makes a copy.
"""

from typing import Any, Final

from devlet.cel.functions import Function, Library, Overload
from devlet.cel.operators import contains
from devlet.cel.texts import key_text
from devlet.cel.types import Kind, Type, map_of
from devlet.cel.values import CelError, Value

_K = Type(Kind.PARAM, "K")
_V = Type(Kind.PARAM, "V")
_MAP = map_of(_K, _V)


class _Growing(dict[Any, Any]):
    """A map under construction."""


def _insert(target: dict[Any, Any], key: Value, value: Value) -> dict[Any, Any]:
    if key in target and contains(key, target):
        raise CelError(f"insert failed: key {key_text(key)} already exists")
    growing = target if type(target) is _Growing else _Growing(target)
    growing[key] = value
    return growing


def _insert_all(target: dict[Any, Any], entries: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in entries.items():
        target = _insert(target, key, value)
    return target


LIBRARY: Final = Library(
    "cel.lib.ext.comprev2",
    (
        Function(
            "cel.@mapInsert",
            (
                Overload("@mapInsert_map_key_value", (_MAP, _K, _V), _MAP, _insert),
                Overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_all),
            ),
        ),
    ),
    macros=("all2", "exists2", "exists_one2", "existsOne2", "transformList", "transformMap", "transformMapEntry"),
)
