"""Discovery: the documents from which clients learn what is served.

There are two forms: one document per group version (legacy), and one document for everything (aggregated). They are
built from the catalogue at each request, because custom resources come and go. Clients ignore a resource without verbs,
so each resource has some.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from devlet.errors import NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import Catalogue, Kind, Resource, group_of
from devlet.objects.views import VIEWS
from devlet.serve.kube_api.paths import VIRTUAL, is_view

__all__ = [
    "Subresource",
    "aggregated",
    "api_versions",
    "group",
    "group_list",
    "group_versions",
    "resource_list",
    "served",
    "subresource",
    "subresources",
    "verbs",
]

_stability = re.compile(r"v([1-9][0-9]{0,8})(?:(alpha|beta)([1-9][0-9]{0,8}))?").fullmatch
_VIEW_VERBS = {view.kind.key: view.verbs for view in VIEWS}
_ALL = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource. It has the kind of its object unless `api_version` and `kind` name another one."""

    name: str
    verbs: tuple[str, ...] = ("get", "patch", "update")
    kind: str = ""
    api_version: str = ""  # empty: that of the resource


_SUBRESOURCES = {
    "binding": Subresource("binding", ("create",), "Binding"),
    "eviction": Subresource("eviction", ("create",), "Eviction", "policy/v1"),
    "finalize": Subresource("finalize", ("update",)),
    "scale": Subresource("scale", kind="Scale", api_version="autoscaling/v1"),
    "token": Subresource("token", ("create",), "TokenRequest", "authentication.k8s.io/v1"),
}


def verbs(kind: Kind) -> tuple[str, ...]:
    """Return the verbs that objects of this kind support."""
    if VIRTUAL.stored(kind.key) is kind:
        return ("create",)
    if is_view(kind):
        return _VIEW_VERBS[kind.key]
    if kind.key == "namespaces":  # each has to be emptied first
        return tuple(verb for verb in _ALL if verb != "deletecollection")
    return _ALL


def subresources(kind: Kind) -> list[Subresource]:
    return [subresource(name) for name in sorted(kind.subresources)]


def subresource(name: str) -> Subresource:
    return _SUBRESOURCES.get(name, Subresource(name))


def api_versions(address: str = "") -> Document:
    """Return the legacy document of `/api`. `address` is the host and port at which clients reach this server."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}] if address else []
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def group_list(catalogue: Catalogue) -> Document:
    """Return the legacy document of `/apis`."""
    groups = [_group(name, versions) for name, versions in _groups(catalogue).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(catalogue: Catalogue, name: str) -> Document:
    """Return the legacy document of `/apis/GROUP`."""
    versions = _groups(catalogue).get(name) if name else None
    if versions is None:
        raise NotFound("the server could not find the requested resource")
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def resource_list(catalogue: Catalogue, api_version: str) -> Document:
    """Return the legacy document of `/api/v1` or `/apis/GROUP/VERSION`. Raise NotFound if nothing is served there."""
    resources = [entry for resource in served(catalogue, api_version) for entry in _entries(resource)]
    if not resources:
        raise NotFound("the server could not find the requested resource")
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources}


def aggregated(catalogue: Catalogue, *, core: bool) -> Document:
    """Return all resources of `/api` (the core group) or `/apis` (all others), in v2 of apidiscovery.k8s.io."""
    items = [
        _discovery(catalogue, name, versions) for name, versions in _groups(catalogue).items() if core != bool(name)
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def served(catalogue: Catalogue, api_version: str) -> list[Resource]:
    """Return the resources of one API version, sorted by name."""
    kinds = [kind for kind in _kinds(catalogue) if api_version in kind.api_versions]
    return sorted((Resource(kind, api_version) for kind in kinds), key=lambda resource: resource.plural)


def group_versions(catalogue: Catalogue) -> list[str]:
    """Return all API versions that are served, group by group."""
    return [version for versions in _groups(catalogue).values() for version in versions]


def _kinds(catalogue: Catalogue) -> Iterator[Kind]:
    yield from catalogue
    yield from VIRTUAL


def _groups(catalogue: Catalogue) -> dict[str, list[str]]:
    """Return the API versions of each group, the preferred one first."""
    found: dict[str, set[str]] = {}
    for kind in _kinds(catalogue):
        for api_version in kind.api_versions:
            found.setdefault(group_of(api_version), set()).add(api_version)
    return {name: _by_preference(versions) for name, versions in found.items()}


def _by_preference(api_versions: Iterable[str]) -> list[str]:
    return sorted(api_versions, key=lambda api_version: _rank(_version(api_version)))


def _rank(version: str) -> tuple[int, int, int, str]:
    """Return a sort key: stable before beta before alpha, newer before older, and names of another form last."""
    if not (match := _stability(version)):
        return 3, 0, 0, version
    major, stage, minor = match.groups()
    return {None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), ""


def _version(api_version: str) -> str:
    return api_version.rpartition("/")[2]


def _group(name: str, api_versions: list[str]) -> Document:
    versions = [{"groupVersion": api_version, "version": _version(api_version)} for api_version in api_versions]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _entries(resource: Resource) -> Iterator[Document]:
    kind = resource.kind
    namespaced = {"namespaced": kind.namespaced}
    yield {
        "name": kind.plural,
        "singularName": kind.kind.lower(),
        **namespaced,
        "kind": kind.kind,
        "verbs": list(verbs(kind)),
        **_names(kind),
    }
    for sub in subresources(kind):
        foreign = {"group": group_of(sub.api_version), "version": _version(sub.api_version)} if sub.api_version else {}
        name = {"name": f"{kind.plural}/{sub.name}", "singularName": ""}
        yield {**name, **namespaced, **foreign, "kind": sub.kind or kind.kind, "verbs": list(sub.verbs)}


def _names(kind: Kind) -> Document:
    names = {"shortNames": list(kind.short_names), "categories": list(kind.categories)}
    return {key: value for key, value in names.items() if value}


def _discovery(catalogue: Catalogue, name: str, api_versions: list[str]) -> Document:
    versions = [
        {
            "version": _version(api_version),
            "resources": [_resource(resource.kind) for resource in served(catalogue, api_version)],
            "freshness": "Current",
        }
        for api_version in api_versions
    ]
    return {"metadata": {"name": name} if name else {}, "versions": versions}


def _resource(kind: Kind) -> Document:
    document = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind.kind, ""),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.kind.lower(),
        "verbs": list(verbs(kind)),
        **_names(kind),
    }
    if below := subresources(kind):
        document["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": _response_kind(sub.kind or kind.kind, sub.api_version),
                "verbs": list(sub.verbs),
            }
            for sub in below
        ]
    return document


def _response_kind(kind: str, api_version: str) -> Document:
    """Return the kind of an answer. An empty group and version mean those of the resource itself."""
    return {"group": group_of(api_version), "version": _version(api_version), "kind": kind}
