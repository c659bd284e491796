"""Which objects the arguments of a command mean, in kubectl's grammar.

    TYPE[,TYPE…] [NAME…]      pods      pods,nodes      pod p1 p2
    TYPE/NAME…                pod/p1 node/n1

A name list belongs to every type before it; `all` and other categories stand for their types.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from devlet.cli.resources import Resource, Resources
from devlet.cli.session import Query
from devlet.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Wanted:
    """Objects of one resource: those with the names, or all if there are none."""

    resource: Resource
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to look, and for which objects. The namespace is empty for all of them."""

    namespace: str
    label_selector: str = ""
    field_selector: str = ""

    @property
    def query(self) -> Query:
        pairs = (("labelSelector", self.label_selector), ("fieldSelector", self.field_selector))
        return [pair for pair in pairs if pair[1]]

    def check(self, wanted: Sequence[Wanted]) -> None:
        """Names exclude selectors and all namespaces, because they say exactly which objects are meant."""
        if not any(w.names for w in wanted):
            return
        if self.query:
            raise InvalidInput("name cannot be provided when a selector is specified")
        if not self.namespace and any(w.resource.namespaced for w in wanted):
            raise InvalidInput("a resource cannot be retrieved by name across all namespaces")


def parse(resources: Resources, arguments: Sequence[str]) -> list[Wanted]:
    if any("/" in argument for argument in arguments):
        return _pairs(resources, arguments)
    types, names = arguments[0], tuple(arguments[1:])
    if not all(names):
        raise InvalidInput("a name is empty")
    found = [Wanted(resource, names) for text in types.split(",") for resource in _types(resources, text)]
    return list(dict.fromkeys(found))


def _pairs(resources: Resources, arguments: Sequence[str]) -> list[Wanted]:
    by_type: dict[Resource, list[str]] = {}
    for argument in arguments:
        type_, _, name = argument.partition("/")
        if not type_ or not name or "/" in name or "," in type_:
            raise InvalidInput(f'"{argument}": write TYPE/NAME for each object, or TYPE NAME NAME…')
        by_type.setdefault(resources.find(type_), []).append(name)
    return [Wanted(resource, tuple(names)) for resource, names in by_type.items()]


def _types(resources: Resources, text: str) -> list[Resource]:
    if not text:
        raise InvalidInput('a resource type is empty: write them as in "pods,nodes"')
    if text == "all" and (found := resources.category(text)):
        return found
    return [resources.find(text)]
