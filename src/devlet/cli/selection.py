"""Which objects the arguments of a command mean, in kubectl's grammar.

    TYPE[,TYPE…] [NAME…]      pods      pods,nodes      pod p1 p2
    TYPE/NAME…                pod/p1 node/n1

A name list belongs to every type before it; `all` stands for the types of that category. After the type of a view of
the node, names may have slashes: `plugin gpu.example.com/gpu`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from devlet.cli.resources import Resource, Resources, view_named
from devlet.cli.session import Query, Session
from devlet.errors import InvalidInput


class Wanted(NamedTuple):
    """Objects of one resource: those with the names, or all if there are none."""

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
        """As in `-o name`."""
        return f"{self.resource.kind_name}/{self.name}"


class Scope(NamedTuple):
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


def place(session: Session, namespace: str, *, everywhere: bool = False) -> str:
    """The namespace to look in: the one asked for, else that of the kubeconfig's context; empty for all."""
    return "" if everywhere else namespace or session.namespace


def one_source(arguments: Sequence[str], files: Sequence[str]) -> None:
    if arguments and files:
        raise InvalidInput("when files are given with -f, no resource may be named as well")
    if not arguments and not files:
        raise InvalidInput("say which objects: TYPE, TYPE NAME, TYPE/NAME or -f FILE")


def parse(resources: Resources, arguments: Sequence[str]) -> list[Wanted]:
    if any("/" in argument for argument in arguments) and not view_named(arguments[0]):
        return _pairs(resources, arguments)
    types, names = arguments[0], tuple(arguments[1:])
    if not all(names):
        raise InvalidInput("a name is empty")
    found = [Wanted(resource, names) for text in types.split(",") for resource in _types(resources, text)]
    return list(dict.fromkeys(found))


def objects(session: Session, scope: Scope, wanted: Sequence[Wanted]) -> Iterator[Named]:
    """Those with the names, which need not exist, and all others that the scope has."""
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
    """For verbs that must not hit more than was said: a type alone needs `--all` or a selector."""
    scope.check(wanted)
    named = any(want.names for want in wanted)
    if everything and (named or scope.label_selector):
        raise InvalidInput("--all excludes names and -l")
    if not named and not scope.query and not everything:
        raise InvalidInput("say which objects: by name, with -l LABELS, or --all of the type")
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
            raise InvalidInput(f'"{argument}": write TYPE/NAME for each object, or TYPE NAME NAME…')
        by_type.setdefault(resources.find(type_), []).append(name)
    return [Wanted(resource, tuple(names)) for resource, names in by_type.items()]


def _types(resources: Resources, text: str) -> list[Resource]:
    if not text:
        raise InvalidInput('a resource type is empty: write them as in "pods,nodes"')
    if text == "all" and (found := resources.category(text)):
        return found
    return [resources.find(text)]
