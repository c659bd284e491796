"""TokenRequest: a token for a service account, on request.

There are several steps, because the token may be bound to an object that must be read in between: `bound_reference`
says which object, `check_node` refuses nodes that ask for the pods of others, and `answer` issues the token.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from devlet.auth.tokens import Binding, Reference, TokenIssuer
from devlet.auth.users import User, node_name
from devlet.errors import BadRequest, Cause, Conflict, Forbidden, InvalidObject
from devlet.objects.documents import Document, copy
from devlet.objects.kinds import NODES, PODS, SECRETS, Resource, group_of
from devlet.objects.subdocuments import ensure, fill, mapping
from devlet.objects.validation.field_errors import invalid
from devlet.objects.values.timestamps import format_time

__all__ = ["BoundReference", "answer", "bound_reference", "check_node"]

DEFAULT_SECONDS = 3600
MIN_SECONDS = 600
MAX_SECONDS = 2**32
MAX_AUDIENCES = 64

_KIND = "TokenRequest.authentication.k8s.io"
_BINDABLE = {"Pod": PODS, "Secret": SECRETS, "Node": NODES}


@dataclass(frozen=True, slots=True)
class BoundReference:
    """An object in the account's namespace, or a node."""

    resource: Resource
    name: str
    uid: str = ""


def bound_reference(request: Document) -> BoundReference | None:
    """Return the object that the token is to be bound to. The caller reads it and passes it to `answer`."""
    reference = mapping(mapping(request, "spec") or {}, "boundObjectRef")
    if reference is None:
        return None
    api_version, kind = _text(reference, "apiVersion"), _text(reference, "kind")
    if group_of(api_version) or kind not in _BINDABLE:
        shown = api_version if group_of(api_version) else f"/{api_version}"
        raise BadRequest(f"cannot bind token to object of type {shown}, Kind={kind}")
    return BoundReference(_BINDABLE[kind], _text(reference, "name"), _text(reference, "uid"))


def check_node(user: User, account: Document, bound: Document | None) -> None:
    """Raise Forbidden if the user is a node and the token is not bound to one of its pods."""
    own = node_name(user)
    if own is not None and (mapping(bound or {}, "spec") or {}).get("nodeName") != own:
        refusal = "node requested token bound to a pod scheduled on a different node"
        name = account["metadata"]["name"]
        raise Forbidden(f'serviceaccounts "{name}" is forbidden: {refusal}', resource="serviceaccounts")


def answer(
    request: Document,
    account: Document,
    issuer: TokenIssuer,
    now: datetime,
    *,
    bound: Document | None = None,
    node: Document | None = None,
) -> Document:
    """Return the request with its token. `bound` is the object that `bound_reference` names. `node` is the Node object
    of a bound pod, if it exists."""
    document: Document = copy(request)
    spec = ensure(document, "spec")
    _fill_metadata(document, account, now)
    audiences = tuple(spec.get("audiences") or (issuer.issuer,))
    spec["audiences"] = list(audiences)
    fill(spec, "expirationSeconds", DEFAULT_SECONDS)
    seconds = spec["expirationSeconds"]
    _validate(audiences, seconds)
    binding = _binding(account, bound_reference(request), bound, node)
    lifetime = timedelta(seconds=seconds)
    document["status"] = {
        "token": issuer.issue(binding, now, lifetime, audiences),
        "expirationTimestamp": format_time(now + lifetime),
    }
    document |= {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
    return document


def _fill_metadata(document: Document, account: Document, now: datetime) -> None:
    metadata, known = ensure(document, "metadata"), account["metadata"]
    for key in ("name", "namespace"):
        if (said := metadata.get(key)) and said != known[key]:
            detail = f"must match the service account {key} if specified"
            raise InvalidObject(_KIND, known["name"], [invalid(f"metadata.{key}", said, detail)])
        metadata[key] = known[key]
    if (uid := metadata.get("uid")) and uid != known["uid"]:
        raise Conflict(
            f'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "{known["name"]}": the UID in the'
            f" token request ({uid}) does not match the UID of the service account ({known['uid']})",
            resource=_KIND,
            name=known["name"],
        )
    metadata["uid"] = known["uid"]
    metadata["creationTimestamp"] = format_time(now)


def _validate(audiences: tuple[object, ...], seconds: object) -> None:
    path = "spec.expirationSeconds"
    causes: list[Cause] = []
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        causes.append(invalid(path, seconds, "must be a whole number"))
    elif seconds < MIN_SECONDS:
        causes.append(invalid(path, seconds, "may not specify a duration less than 10 minutes"))
    elif seconds > MAX_SECONDS:
        causes.append(invalid(path, seconds, "may not specify a duration larger than 2^32 seconds"))
    if len(audiences) > MAX_AUDIENCES or not all(isinstance(one, str) for one in audiences):
        causes.append(invalid("spec.audiences", len(audiences), f"must be at most {MAX_AUDIENCES} strings"))
    if causes:
        raise InvalidObject(_KIND, "", causes)


def _binding(
    account: Document, reference: BoundReference | None, bound: Document | None, node: Document | None
) -> Binding:
    namespace, name = account["metadata"]["namespace"], account["metadata"]["name"]
    itself = _reference(account)
    if reference is None or bound is None:
        return Binding(namespace, itself)
    _check_uid(reference, bound)
    match reference.resource.kind.kind:
        case "Pod":
            _check_account(bound, name)
            return Binding(namespace, itself, pod=_reference(bound), node=_pod_node(bound, node))
        case "Node":
            return Binding(namespace, itself, node=_reference(bound))
        case _:
            return Binding(namespace, itself, secret=_reference(bound))


def _check_uid(reference: BoundReference, bound: Document) -> None:
    if reference.uid and reference.uid != bound["metadata"]["uid"]:
        raise Conflict(
            f'Operation cannot be fulfilled on {reference.resource.kind.kind} "{reference.name}": the UID in the bound'
            f" object reference ({reference.uid}) does not match the UID in record. The object might have been deleted"
            " and then recreated",
            resource=reference.resource.name,
            name=reference.name,
        )


def _check_account(pod: Document, name: str) -> None:
    if (pod.get("spec") or {}).get("serviceAccountName") != name:
        raise BadRequest(
            f'cannot bind token for serviceaccount "{name}" to pod running with different serviceaccount name.'
        )


def _pod_node(pod: Document, node: Document | None) -> Reference | None:
    name = (pod.get("spec") or {}).get("nodeName")
    if not name:
        return None
    return _reference(node) if node is not None else Reference(name)


def _reference(document: Document) -> Reference:
    return Reference(document["metadata"]["name"], document["metadata"]["uid"])


def _text(parent: Document, key: str) -> str:
    value = parent.get(key)
    return value if isinstance(value, str) else ""
