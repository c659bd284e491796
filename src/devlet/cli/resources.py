"""The resources that a server serves, found by name: `pods`, `po`, `Pod`, `resourceclaims.v1beta1.resource.k8s.io`.

Nothing is cached between commands: the core group takes one request, and all other groups take another one, sent only
for names that the core group does not have. The views that a devlet has of its node are known without a request.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from devlet.cli.session import Document, Session, segment
from devlet.errors import DevletError, NotFound
from devlet.objects.subdocuments import mappings, text

_DISCOVERY = ",".join(
    [
        *(f"application/json;g=apidiscovery.k8s.io;v={v};as=APIGroupDiscoveryList" for v in ("v2", "v2beta1")),
        "application/json",
    ]
)
_WHOSE_VIEW = ": this view of a node is served only by the devlet on that machine; use --root DIR there"


class Resource(NamedTuple):
    """A resource in one API version."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()
    short_names: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()
    joined: bool = False  # named by an alias, so `joined_tables` makes its table

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """Return the name used in messages: `pods`, `resourceclaims.resource.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def kind_name(self) -> str:
        """Return the name used by `-o name`: `pod`, `resourceclaim.resource.k8s.io`."""
        return f"{self.kind.lower()}.{self.group}" if self.group else self.kind.lower()

    def collection(self, namespace: str) -> str:
        """Return the path of all objects in a namespace, or in all namespaces if it is empty."""
        prefix = f"/{'apis' if self.group else 'api'}/{self.api_version}"
        if self.namespaced and namespace:
            prefix += f"/namespaces/{segment(namespace, 'namespace')}"
        return f"{prefix}/{self.plural}"

    def item(self, namespace: str, name: str) -> str:
        return f"{self.collection(namespace)}/{segment(name, self.singular)}"

    def answers_to(self, name: str) -> bool:
        return name in (self.plural, self.singular, self.kind.lower()) or name in self.short_names


# The resources of `devlet.objects.views`, repeated here because that package takes too long to import.
VIEWS_GROUP = "devlet.dev"
VIEWS = (
    Resource(VIEWS_GROUP, "v1alpha1", "devices", "device", "Device", namespaced=False),
    Resource(VIEWS_GROUP, "v1alpha1", "plugins", "plugin", "Plugin", namespaced=False),
    Resource(VIEWS_GROUP, "v1alpha1", "holders", "holder", "Holder", namespaced=True),
    Resource(VIEWS_GROUP, "v1alpha1", "drivers", "driver", "Driver", namespaced=False),
    Resource(
        VIEWS_GROUP,
        "v1alpha1",
        "preparedclaims",
        "preparedclaim",
        "PreparedClaim",
        namespaced=True,
        short_names=frozenset({"pclaims"}),
    ),
)

# Alias → type and group. A type of the server with the same name takes precedence.
ALIASES = {
    "claim": ("resourceclaims", "resource.k8s.io"),
    "claims": ("resourceclaims", "resource.k8s.io"),
    "slice": ("resourceslices", "resource.k8s.io"),
    "slices": ("resourceslices", "resource.k8s.io"),
}


class Resources:
    """The resources of one server, requested when they are needed."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @cached_property
    def core(self) -> list[Resource]:
        return list(self._discover("/api"))

    @cached_property
    def groups(self) -> list[Resource]:
        return list(self._discover("/apis"))

    def find(self, text: str) -> Resource:
        """Find a type: first in the core group, then in groups and versions in the server's order of preference."""
        name, dot, rest = text.lower().partition(".")
        if self._session.is_node and (view := view_named(text)):
            return view
        if dot:
            found = self._in_group(name, rest)
        else:
            found = _first(self.core, name) or _first(self.groups, name) or self._alias(name)
        if found is None:
            hint = _WHOSE_VIEW if view_named(text) else self._guess(name)
            raise NotFound(f'the server doesn\'t have a resource type "{text}"{hint}')
        return found

    def category(self, name: str) -> list[Resource]:
        """Return the resources of a category such as `all`, each kind once."""
        found: dict[str, Resource] = {}
        for resource in [*self.core, *self.groups]:
            if name in resource.categories and "list" in resource.verbs:
                found.setdefault(resource.name, resource)
        return list(found.values())

    def of_kind(self, api_version: str, kind: str) -> Resource:
        for resource in self.groups if "/" in api_version else self.core:
            if (resource.api_version, resource.kind) == (api_version, kind):
                return resource
        raise NotFound(f'the server does not serve kind "{kind}" in version "{api_version}"')

    def _in_group(self, name: str, rest: str) -> Resource | None:
        version, _, group = rest.partition(".")
        for resource in self.core if group == "" and version in ("", "v1") else self.groups:
            exact = resource.group == rest or (resource.version, resource.group) == (version, group)
            if exact and resource.answers_to(name):
                return resource
        return None

    def _alias(self, name: str) -> Resource | None:
        found = self._in_group(*ALIASES[name]) if name in ALIASES else None
        return found and found._replace(joined=True)

    def _guess(self, name: str) -> str:
        from difflib import get_close_matches

        known = {n for r in [*self.core, *self.groups] for n in (r.plural, r.singular, *r.short_names)}
        close = get_close_matches(name, sorted(known), n=1)
        return f'; did you mean "{close[0]}"?' if close else ""

    def _discover(self, path: str) -> Iterator[Resource]:
        found = self._session.get(path, accept=_DISCOVERY)
        if found.get("kind") != "APIGroupDiscoveryList":
            raise DevletError(
                f"{self._session.address} does not support aggregated discovery: Kubernetes 1.27 or newer is needed"
            )
        for group in mappings(found, "items"):
            name = text(group, "metadata", "name")
            for version in mappings(group, "versions"):
                for resource in mappings(version, "resources"):
                    if resource.get("verbs") and isinstance(resource.get("responseKind"), dict):
                        yield _resource(name, str(version.get("version")), resource)


def _resource(group: str, version: str, found: Document) -> Resource:
    kind = str(found["responseKind"].get("kind"))
    return Resource(
        group=group,
        version=version,
        plural=str(found.get("resource")),
        singular=str(found.get("singularResource") or kind.lower()),
        kind=kind,
        namespaced=found.get("scope") == "Namespaced",
        verbs=frozenset(found["verbs"]),
        short_names=frozenset(found.get("shortNames") or ()),
        categories=frozenset(found.get("categories") or ()),
    )


def view_named(text: str) -> Resource | None:
    """Return the view of a node that a type names, or None."""
    name, _, group = text.lower().partition(".")
    if group not in ("", VIEWS_GROUP, f"{VIEWS[0].version}.{VIEWS_GROUP}"):
        return None
    return _first(VIEWS, name)


def _first(resources: Sequence[Resource], name: str) -> Resource | None:
    return next((resource for resource in resources if resource.answers_to(name)), None)
