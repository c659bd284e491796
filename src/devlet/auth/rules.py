"""What a user wants to do (`Attributes`), and the rules that allow it."""

from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from devlet.objects.documents import Document

__all__ = ["ALL", "EVERYTHING", "READ", "Attributes", "Decision", "Rule", "rule_of"]

ALL = "*"
READ = ("get", "list", "watch")


class Attributes(Struct, frozen=True, gc=False):
    """A request in the words of authorization: `verb` is get, list, watch, create, update, patch, delete or
    deletecollection for resources, and the lower-case HTTP method for other paths."""

    verb: str
    path: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""  # the plural; empty for paths that are not resources
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""

    @property
    def is_resource(self) -> bool:
        return bool(self.resource)


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A permission: `verbs` on `resources` of `groups`, or on `urls`. A resource may include a subresource, as in
    `pods/status`; `*` matches everything. Without `names` the rule covers all objects. `but` excludes resources."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    but: tuple[str, ...] = ()

    def allows(self, wanted: Attributes) -> bool:
        if not _holds(self.verbs, wanted.verb):
            return False
        if not wanted.is_resource:
            return any(_matches_url(url, wanted.path) for url in self.urls)
        if not _holds(self.groups, wanted.group) or wanted.resource in self.but:
            return False
        return self._has_resource(wanted) and (not self.names or wanted.name in self.names)

    def _has_resource(self, wanted: Attributes) -> bool:
        if not wanted.subresource:
            return _holds(self.resources, wanted.resource)
        full = f"{wanted.resource}/{wanted.subresource}"
        return _holds(self.resources, full) or f"*/{wanted.subresource}" in self.resources


EVERYTHING = (Rule((ALL,), (ALL,), (ALL,)), Rule((ALL,), urls=(ALL,)))


def rule_of(document: Document) -> Rule:
    """Read a rule of a Role or ClusterRole. Values of the wrong type grant nothing."""
    keys = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
    return Rule(*(_strings(document.get(key)) for key in keys))


def _strings(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _holds(values: tuple[str, ...], wanted: str) -> bool:
    return wanted in values or ALL in values


def _matches_url(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith(ALL) else path == pattern
