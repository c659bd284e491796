"""The objects that the arguments of a command select, in kubectl's grammar.

    TYPE[,TYPE…] [NAME…]      pods      pods,nodes      pod p1 p2
    TYPE/NAME…                pod/p1 node/n1

A list of names applies to every type before it; `all` stands for the types of that category. Names of node views may
contain slashes: `plugin gpu.example.com/gpu`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from devlet.cli.resources import Resource, Resources, view_named
from devlet.cli.session import Query, Session
from devlet.errors import InvalidInput


class Wanted(NamedTuple):
    """Objects of one resource: those with the given names, or all if no names are given."""

    resource: Resource
    names: tuple[str, ...] = ()


class Named(NamedTuple):
    """One object. The namespace is empty if its kind has none."""

    resource: Resource
    namespace: str
    name: str

    @property
    def path(self) -> str:
        return self.resource.item(self.namespace, self.name)

    @property
    def text(self) -> str:
        """The name as `-o name` prints it."""
        return f"{self.resource.kind_name}/{self.name}"


class Scope(NamedTuple):
    """The namespace and selectors of a command. The namespace is empty for all namespaces."""

    namespace: str
    label_selector: str = ""
    field_selector: str = ""

    @property
    def query(self) -> Query:
        pairs = (("labelSelector", self.label_selector), ("fieldSelector", self.field_selector))
        return [pair for pair in pairs if pair[1]]

    def check(self, wanted: Sequence[Wanted]) -> None:
        """Reject names combined with selectors or all namespaces."""
        if not any(w.names for w in wanted):
            return
        if self.query:
            raise InvalidInput("name cannot be provided when a selector is specified")
        if not self.namespace and any(w.resource.namespaced for w in wanted):
            raise InvalidInput("a resource cannot be retrieved by name across all namespaces")


def place(session: Session, namespace: str, *, everywhere: bool = False) -> str:
    """Return the given namespace, or else that of the kubeconfig's context; empty for all namespaces."""
    return "" if everywhere else namespace or session.namespace


def one_source(arguments: Sequence[str], files: Sequence[str]) -> None:
    if arguments and files:
        raise InvalidInput("-f cannot be combined with resource types and names")
    if not arguments and not files:
        raise InvalidInput("no resource given: use TYPE, TYPE NAME, TYPE/NAME or -f FILE")


def parse(resources: Resources, arguments: Sequence[str]) -> list[Wanted]:
    if any("/" in argument for argument in arguments) and not view_named(arguments[0]):
        return _pairs(resources, arguments)
    types, names = arguments[0], tuple(arguments[1:])
    if not all(names):
        raise InvalidInput("the name of an object is empty")
    found = [Wanted(resource, names) for text in types.split(",") for resource in _types(resources, text)]
    return list(dict.fromkeys(found))


def objects(session: Session, scope: Scope, wanted: Sequence[Wanted]) -> Iterator[Named]:
    """Yield the named objects, whether they exist or not, or else all objects in the scope."""
    for want in wanted:
        namespace = scope.namespace if want.resource.namespaced else ""
        for name in want.names:
            yield Named(want.resource, namespace, name)
        if not want.names:
            for page in session.pages(want.resource.collection(namespace), scope.query):
                for item in page.get("items") or ():
                    metadata = item.get("metadata") or {}
                    yield Named(want.resource, str(metadata.get("namespace") or ""), str(metadata.get("name")))


def explicit(session: Session, scope: Scope, wanted: Sequence[Wanted], *, everything: bool) -> list[Named]:
    """Return the objects for a verb that changes or waits for them: a type alone needs `--all` or a selector."""
    scope.check(wanted)
    named = any(want.names for want in wanted)
    if everything and (named or scope.label_selector):
        raise InvalidInput("--all cannot be combined with names or -l")
    if not named and not scope.query and not everything:
        raise InvalidInput("no objects selected: give names, a selector with -l, or --all")
    return list(objects(session, scope, wanted))


def of_files(
    resources: Resources, session: Session, files: Sequence[str], *, recursive: bool, namespace: str
) -> list[Named]:
    from devlet.cli import manifests

    found = manifests.read(files, recursive=recursive)
    return [Named(*m.place(resources, namespace, session.namespace), m.name) for m in found]


def _pairs(resources: Resources, arguments: Sequence[str]) -> list[Wanted]:
    by_type: dict[Resource, list[str]] = {}
    for argument in arguments:
        type_, _, name = argument.partition("/")
        if not type_ or not name or "/" in name or "," in type_:
            raise InvalidInput(f'invalid argument "{argument}": use TYPE/NAME for each object, or TYPE NAME…')
        by_type.setdefault(resources.find(type_), []).append(name)
    return [Wanted(resource, tuple(names)) for resource, names in by_type.items()]


def _types(resources: Resources, text: str) -> list[Resource]:
    if not text:
        raise InvalidInput('a resource type is empty: separate types by commas, as in "pods,nodes"')
    if text == "all" and (found := resources.category(text)):
        return found
    return [resources.find(text)]
