"""What a device plugin's Allocate returns, derived for all devices from what was recorded for some.

If one response matches everything recorded, it is kept as a template with placeholders and applies to all devices. If
not, responses are kept as they were and played for the same devices; others get a variable with their ids.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from devlet.cassettes.cassette import Grant, Plugin
from devlet.cassettes.placeholders import ID, IDS, changed, filled, generalised, variable

__all__ = ["for_devices", "summarised"]

_LISTS: Final = ("mounts", "devices", "cdi_devices")
_MAPS: Final = ("env", "annotations")


def summarised(seen: Iterable[Grant]) -> tuple[Grant, ...]:
    """Return a single template if it matches all recorded grants, or else the grants themselves."""
    found = {tuple(sorted(grant.ids)): grant for grant in seen if grant.ids}
    if not found:
        return ()
    templates = {_encoded(template): template for template in map(_template, found.values())}
    if len(templates) == 1:
        (template,) = templates.values()
        if _is_sure(template, len(found)) and all(_is_explained(grant, template) for grant in found.values()):
            return (template,)
    return tuple(found[ids] for ids in sorted(found))


def for_devices(plugin: Plugin, ids: Sequence[str]) -> Grant:
    """Return the grant recorded for exactly these devices, for any, or for each of them; or else name them."""
    known = {tuple(sorted(grant.ids)): grant for grant in plugin.grants}
    if (exact := known.get(tuple(sorted(ids)))) and exact.ids:
        return exact
    if template := known.get(()):
        return _for(template, ids)
    single = [known[id,] for id in ids if (id,) in known]
    if ids and len(single) == len(ids):
        return _joined(single, ids)
    return Grant(ids=tuple(ids), env={variable(plugin.resource): ",".join(ids)})


def _template(grant: Grant) -> Grant:
    found: dict[str, Any] = {}
    for name in _LISTS:
        entries = [_general(entry, grant.ids) for entry in getattr(grant, name)]
        found[name] = tuple({_encoded(entry): entry for entry in entries}.values())
    for name in _MAPS:
        pairs = [(_general(key, grant.ids), _value(text, grant.ids)) for key, text in getattr(grant, name).items()]
        found[name] = dict(sorted(pairs))
    return Grant(**found)


def _general(value: Any, ids: Sequence[str]) -> Any:
    for id in sorted(ids, key=len, reverse=True):
        value = changed(value, lambda text, id=id: generalised(text, {ID: id}))  # type: ignore[misc]
    return value


def _value(text: str, ids: Sequence[str]) -> str:
    return IDS if sorted(text.split(",")) == sorted(ids) else str(_general(text, ids))


def _is_sure(template: Grant, seen: int) -> bool:
    """Return whether the template holds for all devices. Seen once, a node or file that does not name its device may
    not."""
    if seen > 1:
        return True
    of_devices = [_text(entry) for name in _LISTS for entry in getattr(template, name)]
    return all(ID in text for text in of_devices)


def _is_explained(grant: Grant, template: Grant) -> bool:
    made = _for(template, grant.ids)
    return _normal(made) == _normal(grant)


def _for(template: Grant, ids: Sequence[str]) -> Grant:
    found: dict[str, Any] = {}
    for name in _LISTS:
        found[name] = tuple(each for entry in getattr(template, name) for each in _filled(entry, ids))
    for name in _MAPS:
        pairs = [pair for item in getattr(template, name).items() for pair in _filled(list(item), ids)]
        found[name] = dict(pairs)
    return Grant(ids=tuple(ids), **found)


def _filled(entry: Any, ids: Sequence[str]) -> Iterator[Any]:
    """Fill an entry, once for each device if it names one."""
    joined = ",".join(ids)
    for id in ids if ID in _text(entry) else ("",):
        yield changed(entry, lambda text, id=id: filled(text, {ID: id, IDS: joined}))  # type: ignore[misc]


def _joined(grants: Sequence[Grant], ids: Sequence[str]) -> Grant:
    """Join the grants of several devices: concatenate lists without duplicates, and join strings with commas."""
    found: dict[str, Any] = {}
    for name in _LISTS:
        entries = [entry for grant in grants for entry in getattr(grant, name)]
        found[name] = tuple({_encoded(entry): entry for entry in entries}.values())
    for name in _MAPS:
        keys = dict.fromkeys(key for grant in grants for key in getattr(grant, name))
        found[name] = {key: _texts([getattr(grant, name).get(key) for grant in grants]) for key in keys}
    return Grant(ids=tuple(ids), **found)


def _texts(texts: Iterable[str | None]) -> str:
    return ",".join(dict.fromkeys(text for text in texts if text is not None))


def _normal(grant: Grant) -> object:
    """Return a comparable form, in which neither the order of entries nor that of ids in a string matters."""
    lists = [sorted(_encoded(entry) for entry in getattr(grant, name)) for name in _LISTS]
    maps = [{key: sorted(text.split(",")) for key, text in getattr(grant, name).items()} for name in _MAPS]
    return lists, maps


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _text(value: Any) -> str:
    return _encoded(value).decode()
