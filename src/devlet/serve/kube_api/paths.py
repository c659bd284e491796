"""Parsing URL paths of the Kubernetes API.

    /api/v1/…  and  /apis/GROUP/VERSION/…   then
    PLURAL [/NAME [/SUBRESOURCE]]  or  namespaces/NAMESPACE/PLURAL [/NAME [/SUBRESOURCE]]

The namespace itself is `namespaces/NAME`, and `namespaces/NAME/status` is its subresource, not a resource in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from devlet.errors import BadRequest, NotFound
from devlet.objects import views
from devlet.objects.kinds import Catalogue, Kind, Resource

_NAMESPACE_SUBRESOURCES = ("status", "finalize")
MAX_PATH = 4_096

# These kinds are answered and never stored.
VIRTUAL = Catalogue(
    (
        Kind("Binding", "bindings", ("v1",)),
        Kind("TokenReview", "tokenreviews", ("authentication.k8s.io/v1",), namespaced=False),
        Kind("SelfSubjectReview", "selfsubjectreviews", ("authentication.k8s.io/v1",), namespaced=False),
        Kind("SelfSubjectAccessReview", "selfsubjectaccessreviews", ("authorization.k8s.io/v1",), namespaced=False),
        Kind("SelfSubjectRulesReview", "selfsubjectrulesreviews", ("authorization.k8s.io/v1",), namespaced=False),
        Kind("SubjectAccessReview", "subjectaccessreviews", ("authorization.k8s.io/v1",), namespaced=False),
        Kind("LocalSubjectAccessReview", "localsubjectaccessreviews", ("authorization.k8s.io/v1",)),
    )
)

VIEWS = Catalogue(view.kind for view in views.VIEWS)


class WithViews(Catalogue):
    """The stored kinds, which may change, and the views."""

    def __init__(self, stored: Catalogue) -> None:
        super().__init__(VIEWS)
        self._stored = stored

    def __iter__(self) -> Iterator[Kind]:
        yield from self._stored
        yield from super().__iter__()

    def stored(self, key: str) -> Kind | None:
        return super().stored(key) or self._stored.stored(key)

    def resource(self, api_version: str, plural: str) -> Resource:
        try:
            return super().resource(api_version, plural)
        except NotFound:
            return self._stored.resource(api_version, plural)

    def of_kind(self, api_version: str, kind: str) -> Resource:
        try:
            return super().of_kind(api_version, kind)
        except NotFound:
            return self._stored.of_kind(api_version, kind)


def is_view(kind: Kind) -> bool:
    return VIEWS.stored(kind.key) is kind


def path_of(target: str) -> str:
    """Return the path in the target of a request, which may be a whole URL and have a query."""
    if not target.startswith("/") and "://" in (url := target.partition("?")[0]):
        target = "/" + url.partition("://")[2].partition("/")[2]
    return target.partition("?")[0]


@dataclass(frozen=True, slots=True)
class Target:
    """A resource, and the object or subresource that the path names."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    virtual: bool = False


@dataclass(frozen=True, slots=True)
class GroupVersion:
    """The document that lists the resources of an API version."""

    api_version: str


@dataclass(frozen=True, slots=True)
class Group:
    """The document that lists the versions of a group."""

    name: str


@dataclass(frozen=True, slots=True)
class Other:
    """Any other path: health, version, discovery, OpenAPI, or an unknown path."""

    path: str


def parse(catalogue: Catalogue, path: str) -> Target | GroupVersion | Group | Other:
    """Return what the path names. Raise NotFound for an unknown resource, and BadRequest for a path that clients and
    proxies could read differently, such as one with the name `..`."""
    if len(path) > MAX_PATH:
        raise BadRequest(f"the path is longer than {MAX_PATH} bytes")
    segments = [_segment(part) for part in path.strip("/").split("/")]
    match segments:
        case ["api", version]:
            return GroupVersion(version)
        case ["api", version, *rest]:
            return _target(catalogue, version, rest)
        case ["apis", group]:
            return Group(group)
        case ["apis", group, version]:
            return GroupVersion(f"{group}/{version}")
        case ["apis", group, version, *rest]:
            return _target(catalogue, f"{group}/{version}", rest)
        case _:
            return Other("/" + "/".join(segments))


def _segment(part: str) -> str:
    """Decode one segment. Names are used as they are, so a name with an encoded slash or NUL is refused."""
    try:
        text = unquote(part, errors="strict")
    except UnicodeDecodeError:
        text = "\0"
    if "/" in text or "\0" in text:
        raise NotFound("the server could not find the requested resource")
    return text


def _target(catalogue: Catalogue, api_version: str, rest: list[str]) -> Target:
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and not (api_version == "v1" and rest[2] in _NAMESPACE_SUBRESOURCES):
        namespace, rest = rest[1], rest[2:]
        if not namespace:
            raise BadRequest("an empty namespace may not be set in the path")
    plural, name, subresource, *more = [*rest, "", ""]
    if [part for part in more if part]:
        raise NotFound("the server could not find the requested resource")
    resource, virtual = _find(catalogue, api_version, plural)
    if namespace and not resource.namespaced:
        raise NotFound("the server could not find the requested resource")
    for parameter, value in (("Namespace", namespace), ("Name", name)):
        if value in (".", ".."):
            raise BadRequest(f"{parameter} parameter invalid: \"{value}\": may not be '{value}'")
    return Target(resource, namespace, name, subresource, virtual)


def _find(catalogue: Catalogue, api_version: str, plural: str) -> tuple[Resource, bool]:
    try:
        return catalogue.resource(api_version, plural), False
    except NotFound:
        return VIRTUAL.resource(api_version, plural), True
