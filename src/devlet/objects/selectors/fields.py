"""Field selectors: `spec.nodeName=worker,status.phase!=Failed`, for the few fields that each kind supports.

An unset field compares as the empty string; booleans compare as `true` and `false`. Requirements use the stored name of
a field, so `spec.host` becomes `spec.nodeName`, and `regarding.name` of an events.k8s.io Event becomes
`involvedObject.name`. Documents of either Event shape can be matched.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from devlet.errors import BadRequest
from devlet.objects.documents import Document
from devlet.objects.kinds import VIEWS_GROUP, group_of
from devlet.objects.views import VIEWS

MAX_TEXT: Final = 64 * 1024

Getter = Callable[[Document], str]


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    field: str
    operator: Literal["=", "!="]
    value: str

    def __str__(self) -> str:
        return f"{self.field}{self.operator}{escape(self.value)}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """A selector. It matches documents that meet all requirements."""

    requirements: tuple[FieldRequirement, ...] = ()

    def matches(self, document: Document) -> bool:
        for requirement in self.requirements:
            equal = _GETTERS[requirement.field](document) == requirement.value
            if equal != (requirement.operator == "="):
                return False
        return True

    def exact(self, field: str) -> str | None:
        """Return the value that the field must have, if the selector requires a single value."""
        for requirement in self.requirements:
            if requirement.field == field and requirement.operator == "=":
                return requirement.value
        return None

    @property
    def selects_everything(self) -> bool:
        return not self.requirements

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING: Final = FieldSelector()


def parse(text: str, api_version: str, kind: str, namespaced: bool) -> FieldSelector:
    """Parse a selector for a kind. Raises BadRequest for a field that the kind does not support."""
    if len(text) > MAX_TEXT:
        raise BadRequest(f"field selector has {len(text)} characters, at most {MAX_TEXT} are allowed")
    fields = selectable_fields(api_version, kind, namespaced)
    found: list[FieldRequirement] = []
    for term in filter(None, _split(text)):
        name, operator, escaped = _term(term, text)
        value = unescape(escaped)
        if name not in fields:
            raise BadRequest(_not_supported(name, api_version, kind, fields))
        found.append(FieldRequirement(fields[name], operator, value))
    return FieldSelector(tuple(sorted(found, key=str)))


def selectable_fields(api_version: str, kind: str, namespaced: bool) -> Mapping[str, str]:
    """Return the fields of a kind: from the names that clients use to the stored names."""
    fields = {"metadata.name": "metadata.name"}
    if namespaced:
        fields["metadata.namespace"] = "metadata.namespace"
    return fields | _FIELDS.get((group_of(api_version), kind), {})


def escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def unescape(value: str) -> str:
    out: list[str] = []
    characters = iter(value)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in ("\\", ",", "="):
                raise BadRequest(f"invalid field selector: invalid escape sequence: \\{escaped}")
            out.append(escaped)
        elif character in ",=":
            raise BadRequest(f"invalid field selector: unescaped character in value: {character}")
        else:
            out.append(character)
    return "".join(out)


def _split(text: str) -> list[str]:
    """Split at commas that are not escaped."""
    terms: list[str] = []
    start = at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == ",":
            terms.append(text[start:at])
            start = at + 1
        at += 1
    return [*terms, text[start:]]


def _term(term: str, text: str) -> tuple[str, Literal["=", "!="], str]:
    name, equals, value = term.partition("=")
    if not equals:
        raise BadRequest(f"invalid selector: '{text}'; can't understand '{term}'")
    if name.endswith("!"):
        return name[:-1], "!=", value
    return name, "=", value.removeprefix("=")


def _not_supported(name: str, api_version: str, kind: str, fields: Mapping[str, str]) -> str:
    key = (group_of(api_version), kind)
    if key == ("resource.k8s.io", "ResourceSlice"):
        return f"field label not supported for {api_version}, Kind={kind}: {name}"
    if key in _FIELDS:
        return f"field label not supported: {name}"
    known = ", ".join(f'"{field}"' for field in fields)
    return f'"{name}" is not a known field selector: only {known}'


def _value(document: Document, path: tuple[str, ...]) -> Any:
    value: Any = document
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _at(*path: str) -> Getter:
    def get(document: Document) -> str:
        value = _value(document, path)
        return value if isinstance(value, str) else ""

    return get


def _flag(*path: str) -> Getter:
    return lambda document: "true" if _value(document, path) is True else "false"


def _either(*getters: Getter) -> Getter:
    """Return a getter for the first of the fields that is set."""
    return lambda document: next(filter(None, (get(document) for get in getters)), "")


def _pod_ips(document: Document) -> str:
    listed = _value(document, ("status", "podIPs"))
    return ",".join(_at("ip")(entry) for entry in listed) if isinstance(listed, list) else ""


_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_reporting = _either(_at("reportingComponent"), _at("reportingController"))

_GETTERS: dict[str, Getter] = {
    "status.podIPs": _pod_ips,
    "spec.hostNetwork": _flag("spec", "hostNetwork"),
    "spec.unschedulable": _flag("spec", "unschedulable"),
    "reportingComponent": _reporting,
    "source": _either(_at("source", "component"), _at("deprecatedSource", "component"), _reporting),
    **{f"involvedObject.{key}": _either(_at("involvedObject", key), _at("regarding", key)) for key in _REFERENCE},
}


def _same(*fields: str) -> dict[str, str]:
    for field in fields:
        _GETTERS.setdefault(field, _at(*field.split(".")))
    return dict(zip(fields, fields, strict=True))


_same("metadata.name", "metadata.namespace")

# By group and kind: all versions of a group support the same fields.
_FIELDS: dict[tuple[str, str], dict[str, str]] = {
    ("", "Pod"): {
        "spec.host": "spec.nodeName",
        **_same("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
        **_same("spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
    },
    ("", "Node"): _same("spec.unschedulable"),
    ("", "Namespace"): _same("status.phase"),
    ("", "Secret"): _same("type"),
    ("", "Service"): _same("spec.clusterIP", "spec.type"),
    ("", "Event"): _same(
        *(f"involvedObject.{key}" for key in _REFERENCE), "reason", "reportingComponent", "source", "type"
    ),
    ("events.k8s.io", "Event"): {
        **{f"regarding.{key}": f"involvedObject.{key}" for key in _REFERENCE},
        **_same("reason", "type"),
        "reportingController": "reportingComponent",
    },
    ("resource.k8s.io", "ResourceSlice"): _same("spec.nodeName", "spec.driver"),
} | {(VIEWS_GROUP, view.kind.kind): _same(*view.selectable) for view in VIEWS}
