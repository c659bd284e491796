"""The operations of a resource in OpenAPI: one per path and method.

kubectl reads two things here. `explain` finds the kind of a resource by its GET operation. `create` and `apply` look
for the parameter `fieldValidation` of the PATCH operation: without it, kubectl refuses to send anything.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from devlet.objects.documents import Document
from devlet.objects.kinds import Resource, group_of
from devlet.objects.schema import messages as schema
from devlet.serve.kube_api import discovery
from devlet.serve.kube_api.openapi_schemas import DELETE_OPTIONS, PATCH, STATUS, component_name

__all__ = ["PATCH_TYPES", "Operation", "Parameter", "kind_component", "operations", "path_parameters"]

PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)

_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_LIST = (
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
)
_WATCH = ("allowWatchBookmarks", *_LIST, "watch")
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_TYPES = {
    "allowWatchBookmarks": "boolean",
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "limit": "integer",
    "orphanDependents": "boolean",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
# action: HTTP method, verb in discovery, word in the operation's id, parameters, status codes of success
_ACTIONS = {
    "list": ("get", "list", "list", _WATCH, (200,)),
    "post": ("post", "create", "create", _WRITE, (200, 201, 202)),
    "deletecollection": ("delete", "deletecollection", "delete", (*_DELETE, *_LIST), (200,)),
    "get": ("get", "get", "read", (), (200,)),
    "put": ("put", "update", "replace", _WRITE, (200, 201)),
    "patch": ("patch", "patch", "patch", (*_WRITE, "force"), (200, 201)),
    "delete": ("delete", "delete", "delete", _DELETE, (200, 202)),
}
_ON_COLLECTION = ("list", "post", "deletecollection")
_ON_OBJECT = ("get", "put", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: str = "string"
    in_path: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """`body` and `answer` are names of components. The body of a GET is empty."""

    path: str
    method: str
    action: str
    id: str
    api_version: str
    kind: str
    parameters: tuple[Parameter, ...]
    body: str
    answer: str
    codes: tuple[int, ...]

    @property
    def type(self) -> Document:
        version = self.api_version.rpartition("/")[2]
        return {"group": group_of(self.api_version), "version": version, "kind": self.kind}

    @property
    def body_types(self) -> tuple[str, ...]:
        return PATCH_TYPES if self.action == "patch" else ("*/*",)


def operations(resource: Resource) -> Iterator[Operation]:
    """Yield the operations of a resource and of its subresources."""
    verbs = discovery.verbs(resource.kind)
    what, everywhere = resource.kind.kind, f"{resource.path}/{resource.plural}"
    collection = everywhere
    if resource.namespaced:
        collection = f"{resource.path}/namespaces/{{namespace}}/{resource.plural}"
        if "list" in verbs:
            yield _operation(resource, everywhere, "list", f"{what}ForAllNamespaces")
        what = f"Namespaced{what}"
    for path, actions in ((collection, _ON_COLLECTION), (f"{collection}/{{name}}", _ON_OBJECT)):
        yield from (_operation(resource, path, action, what) for action in actions if _ACTIONS[action][1] in verbs)
    for below in discovery.subresources(resource.kind):
        yield from _below(resource, below, f"{collection}/{{name}}/{below.name}", what)


def path_parameters(path: str) -> list[Parameter]:
    """Return the parameters that all operations at a path have."""
    named = [Parameter(name, in_path=True) for name in ("name", "namespace") if f"{{{name}}}" in path]
    return [*named, Parameter("pretty")]


def kind_component(api_version: str, kind: str) -> str:
    """Return the name of a kind's component. For a kind that is not in the schema table, it has the reversed group."""
    if message := schema.message_of(api_version, kind):
        return component_name(message.name)
    group, _, version = api_version.rpartition("/")
    return ".".join([*reversed(group.split(".")), version, kind])


def _below(resource: Resource, below: discovery.Subresource, path: str, what: str) -> Iterator[Operation]:
    kind, version = below.kind or resource.kind.kind, below.api_version or resource.api_version
    for action in ("get", "post", "put", "patch"):
        if _ACTIONS[action][1] in below.verbs:
            yield _operation(resource, path, action, what + below.name.capitalize(), kind=kind, api_version=version)


def _operation(
    resource: Resource, path: str, action: str, what: str, *, kind: str = "", api_version: str = ""
) -> Operation:
    method, _, word, parameters, codes = _ACTIONS[action]
    kind, api_version = kind or resource.kind.kind, api_version or resource.api_version
    shown = kind_component(api_version, kind)
    listed = kind_component(api_version, resource.kind.list_kind or f"{kind}List")
    bodies = {"post": shown, "put": shown, "patch": PATCH, "delete": DELETE_OPTIONS, "deletecollection": DELETE_OPTIONS}
    deleted = shown if resource.kind.delete_returns_object else STATUS
    answers = {"list": listed, "delete": deleted, "deletecollection": STATUS}
    return Operation(
        path,
        method,
        action,
        f"{word}{_where(resource)}{'Collection' if action == 'deletecollection' else ''}{what}",
        api_version,
        kind,
        tuple(Parameter(name, _TYPES.get(name, "string")) for name in sorted(parameters)),
        bodies.get(action, ""),
        answers.get(action, shown),
        codes,
    )


def _where(resource: Resource) -> str:
    """Return the group and version as they appear in an operation's id: `CoreV1`."""
    group = resource.group.removesuffix(".k8s.io") or "core"
    words = [word[:1].upper() + word[1:] for part in group.split(".") for word in part.split("-")]
    return "".join([*words, resource.version.capitalize()])
