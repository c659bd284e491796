"""Strategic merge patch: a merge patch that can change individual elements of lists.

Objects merge key by key and null removes. A list replaces the old one unless its field has the strategy "merge":
then elements are matched by the merge key (containers by name), or, if they are plain values, added to the set.
Elements of the patch keep the order of the patch, and elements that only the server has keep the server's order.
Where these orders do not decide, the patch's elements come first, so a new element ends up in front.

Directives, all inside the patch:

$patch                          delete | replace | merge; in an object, or in an element of a merged list
$retainKeys                     the keys that an object keeps
$deleteFromPrimitiveList/FIELD  values to remove from a list
$setElementOrder/FIELD          the order of the resulting list
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from devlet.errors import BadRequest
from devlet.objects.documents import Document
from devlet.objects.patches.limits import check_depth
from devlet.objects.schema.messages import Field, Message

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_DELETE = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


@dataclass(frozen=True, slots=True)
class _Values:
    """The inside of a map whose values are messages: any key is allowed."""

    message: Message


_Scope = Message | _Values | None


def apply(document: Document, patch: Any, message: Message | None) -> Document:
    """Return the document after the patch. Without a message, and for fields that it does not have, lists are
    replaced."""
    if not isinstance(patch, dict):
        raise BadRequest("a strategic merge patch must be an object")
    check_depth(patch, "the strategic merge patch")
    return _merge_map(document, patch, message)


def _merge_map(original: dict[str, Any], patch: dict[str, Any], scope: _Scope) -> dict[str, Any]:
    match patch.get(_PATCH, "merge"):
        case "delete":
            return {}
        case "replace":
            return {key: value for key, value in patch.items() if key != _PATCH}
        case "merge":
            return _merge_keys(original, patch, scope)
        case other:
            raise BadRequest(f'"$patch" must be delete, replace or merge; got {other!r}')


def _merge_keys(original: dict[str, Any], patch: dict[str, Any], scope: _Scope) -> dict[str, Any]:
    result = _retained(original, patch)
    for key, value in patch.items():
        if key in (_PATCH, _RETAIN) or key.startswith(_DELETE):
            continue
        if key.startswith(_ORDER):
            _reorder(result, patch, key, scope)
        else:
            _merge_key(result, patch, key, value, scope)
    for key, values in patch.items():
        if key.startswith(_DELETE):
            _delete_values(result, key, values)
    return result


def _merge_key(result: dict[str, Any], patch: dict[str, Any], key: str, value: Any, scope: _Scope) -> None:
    if value is None:
        result.pop(key, None)
        return
    field = _field(scope, key)
    if isinstance(value, dict):
        merged = _merge_child(result.get(key), value, field, _below(scope, key))
        if merged is not None:
            result[key] = merged
    elif isinstance(value, list) and field is not None and "merge" in field.patch_strategy:
        old = result.get(key)
        order = patch.get(_ORDER + key)
        result[key] = _List(key, field, order).merge(old if isinstance(old, list) else None, value)
    else:
        result[key] = value


def _merge_child(old: Any, patch: dict[str, Any], field: Field | None, scope: _Scope) -> dict[str, Any] | None:
    """Return the object after the patch; None if it does not exist and the patch asks for its deletion."""
    if not isinstance(old, dict):
        return None if patch.get(_PATCH) == "delete" else _merge_map({}, patch, scope)
    if field is not None and "replace" in field.patch_strategy:
        return _merge_map({}, patch, scope)
    return _merge_map(old, patch, scope)


def _retained(original: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    if _RETAIN not in patch:
        return dict(original)
    keep = patch[_RETAIN]
    if not isinstance(keep, list) or not all(isinstance(key, str) for key in keep):
        raise BadRequest('"$retainKeys" must be a list of keys')
    names = set(keep)
    for key, value in patch.items():
        if value is not None and not key.startswith("$") and key not in names:
            raise BadRequest(f'the patch sets "{key}", which its "$retainKeys" does not list')
    return {key: value for key, value in original.items() if key in names}


def _delete_values(result: dict[str, Any], directive: str, values: Any) -> None:
    if not isinstance(values, list):
        raise BadRequest(f'"{directive}" must be a list')
    key = directive.removeprefix(_DELETE)
    if isinstance(old := result.get(key), list):
        gone = {_identity(value, directive) for value in values}
        result[key] = [v for v in old if isinstance(v, (dict, list)) or _identity(v, directive) not in gone]


def _reorder(result: dict[str, Any], patch: dict[str, Any], directive: str, scope: _Scope) -> None:
    """Order a list that the patch does not otherwise change; `_merge_key` orders all others."""
    key = directive.removeprefix(_ORDER)
    old = result.get(key)
    if key in patch or old is None:
        return
    field = _field(scope, key)
    if not isinstance(old, list) or field is None:
        raise BadRequest(f'"{directive}": "{key}" is not a list that can be merged')
    result[key] = _List(key, field, patch[directive]).merge(old, [])


def _field(scope: _Scope, key: str) -> Field | None:
    return scope.properties.get(key) if isinstance(scope, Message) else None


def _below(scope: _Scope, key: str) -> _Scope:
    if isinstance(scope, _Values):
        return scope.message
    field = _field(scope, key)
    if field is None or not field.is_message:
        return None
    return _Values(field.message()) if field.label == "map" else field.message()


def _identity(value: Any, where: str) -> Hashable:
    if isinstance(value, (dict, list)):
        raise BadRequest(f'"{where}": expected plain values, got {value!r:.80}')
    return (isinstance(value, bool), value)


class _List:
    """A list with the strategy "merge"; `_key` is empty for plain values."""

    def __init__(self, name: str, field: Field, order: Any) -> None:
        self._name = name
        self._key = field.patch_merge_key
        self._message = field.message() if field.is_message else None
        self._order: list[Any] | None = order
        if order is not None and not isinstance(order, list):
            raise BadRequest(f'"{_ORDER}{name}" must be a list')

    def merge(self, old: list[Any] | None, patch: list[Any]) -> list[Any]:
        """Return the list after the patch. If there was none, the patch's elements are used even without their key."""
        wanted = [element for element in patch if not self._is_directive(element)]
        if any(self._directive(element) == "replace" for element in patch):
            return [self._new(element) for element in wanted]
        if old is None:
            return [self._new(element) for element in wanted]
        gone = {self._id(element) for element in patch if self._directive(element) == "delete"}
        before = [(key, element) for element in old if (key := self._id_or_own(element)) not in gone]
        return self._arranged(before, wanted)

    def _arranged(self, before: list[tuple[Hashable, Any]], wanted: list[Any]) -> list[Any]:
        asked = [self._id(element) for element in wanted]
        order = asked if self._order is None else [self._id(element) for element in self._order]
        if self._order is not None:
            self._check_order(asked, order)
        server_order = [key for key, _ in before]
        return _interleave(self._united(before, asked, wanted), order, server_order)

    def _united(
        self, before: list[tuple[Hashable, Any]], asked: list[Hashable], wanted: list[Any]
    ) -> list[tuple[Hashable, Any]]:
        items = list(before)
        at = {key: index for index, (key, _) in reversed(list(enumerate(items)))}
        for key, element in zip(asked, wanted, strict=True):
            if key not in at:
                at[key] = len(items)
                items.append((key, self._new(element)))
            elif self._key:
                items[at[key]] = (key, _merge_map(items[at[key]][1], element, self._message))
        return items if self._key else list({key: (key, element) for key, element in items}.values())

    def _check_order(self, asked: Sequence[Hashable], order: Sequence[Hashable]) -> None:
        rank = {key: index for index, key in enumerate(order)}
        ranks = [rank.get(key, -1) for key in asked]
        if -1 in ranks or ranks != sorted(ranks):
            raise BadRequest(f'the order of "{self._name}" in the patch does not match "{_ORDER}{self._name}"')

    def _new(self, element: Any) -> Any:
        return _merge_map({}, element, self._message) if isinstance(element, dict) else element

    def _id(self, element: Any) -> Hashable:
        if not self._key:
            return _identity(element, self._name)
        if not isinstance(element, dict):
            raise BadRequest(f'"{self._name}": expected objects with the key "{self._key}", got {element!r:.80}')
        if self._key not in element:
            raise BadRequest(f'"{self._name}": an element does not contain the merge key "{self._key}"')
        return _identity(element[self._key], self._key)

    def _id_or_own(self, element: Any) -> Hashable:
        """Return `_id`, or for a stored element without its key an id that equals only itself."""
        keyed = isinstance(element, dict) and self._key in element
        return self._id(element) if keyed or not self._key else id(element)

    def _directive(self, element: Any) -> str:
        directive = element.get(_PATCH, "") if self._key and isinstance(element, dict) else ""
        if directive not in ("", "delete", "replace", "merge"):
            raise BadRequest(f'"{self._name}": "$patch" must be delete, replace or merge; got {directive!r}')
        return str(directive)

    def _is_directive(self, element: Any) -> bool:
        return self._directive(element) in ("delete", "replace")


def _interleave(
    items: list[tuple[Hashable, Any]], order: Sequence[Hashable], server_order: Sequence[Hashable]
) -> list[Any]:
    """Put elements named in `order` in that order and keep the order of the others. One of the others goes first only
    if the server has both elements and has it in front."""
    rank = {key: index for index, key in reversed(list(enumerate(order)))}
    place = {key: index for index, key in reversed(list(enumerate(server_order)))}
    named = sorted((item for item in items if item[0] in rank), key=lambda item: rank[item[0]])
    others = [item for item in items if item[0] not in rank]
    result = []
    index = 0
    for key, element in named:
        here = place.get(key, -1)
        while index < len(others) and place.get(others[index][0], len(place)) < here:
            result.append(others[index][1])
            index += 1
        result.append(element)
    return result + [element for _, element in others[index:]]
