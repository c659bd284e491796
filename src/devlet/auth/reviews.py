"""The review kinds: questions to the API about who a user is and what a user may do.

Each function takes the posted document and returns the answer; nothing is stored. "No" is an answer (201); only a
question that cannot be understood is an error.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from devlet.auth.authentication import Authenticator, Unauthorized
from devlet.auth.authorization import Authorizer
from devlet.auth.rules import Attributes, Rule
from devlet.auth.users import User
from devlet.errors import BadRequest, Cause, InvalidObject
from devlet.objects.documents import Document
from devlet.objects.selectors.fields import escape
from devlet.objects.subdocuments import mapping, mappings
from devlet.objects.validation.field_errors import invalid
from devlet.objects.values.timestamps import format_time

__all__ = [
    "local_subject_access_review",
    "self_subject_access_review",
    "self_subject_review",
    "self_subject_rules_review",
    "subject_access_review",
    "token_review",
]

_AUTHENTICATION = "authentication.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"


def self_subject_review(document: Document, user: User, now: datetime) -> Document:
    """Answer "Who am I?"."""
    _refuse("SelfSubjectReview", _AUTHENTICATION, _metadata_causes(document))
    answer = _answer("SelfSubjectReview", _AUTHENTICATION, None, {"userInfo": _user_info(user)})
    answer["metadata"] = {"creationTimestamp": format_time(now)}
    return answer


def token_review(document: Document, authenticator: Authenticator) -> Document:
    """Answer "Whose token is this?"."""
    spec = _spec(document)
    token, audiences = spec.get("token"), _texts(spec.get("audiences"))
    _refuse("TokenReview", _AUTHENTICATION, _metadata_causes(document))
    if not isinstance(token, str) or not token:
        raise BadRequest("token is required for TokenReview in authentication")
    try:
        user, good_for = authenticator.token_user(token, audiences)
    except Unauthorized:
        return _answer("TokenReview", _AUTHENTICATION, spec, {"error": "invalid bearer token", "user": {}})
    status = {"audiences": list(good_for), "authenticated": True, "user": _user_info(user)}
    return _answer("TokenReview", _AUTHENTICATION, spec, status)


def self_subject_access_review(document: Document, user: User, authorizer: Authorizer) -> Document:
    """Answer "May I do this?"."""
    kind, spec = "SelfSubjectAccessReview", _spec(document)
    _refuse(kind, _AUTHORIZATION, [*_attribute_causes(spec), *_metadata_causes(document)])
    return _answer(kind, _AUTHORIZATION, spec, _access(user, spec, authorizer))


def subject_access_review(document: Document, authorizer: Authorizer) -> Document:
    """Answer "May this user do this?"."""
    kind, spec = "SubjectAccessReview", _spec(document)
    _refuse(kind, _AUTHORIZATION, [*_attribute_causes(spec), *_subject_causes(spec), *_metadata_causes(document)])
    return _answer(kind, _AUTHORIZATION, spec, _access(_subject(spec), spec, authorizer))


def local_subject_access_review(document: Document, namespace: str, authorizer: Authorizer) -> Document:
    """Answer "May this user do this in this namespace?"."""
    kind, spec = "LocalSubjectAccessReview", _spec(document)
    causes = [*_attribute_causes(spec), *_subject_causes(spec), *_metadata_causes(document, "namespace")]
    resource = mapping(spec, "resourceAttributes")
    if resource is not None and (asked := resource.get("namespace", "")) != namespace:
        causes.append(invalid("spec.resourceAttributes.namespace", asked, "must match metadata.namespace"))
    if (path := mapping(spec, "nonResourceAttributes")) is not None:
        causes.append(invalid("spec.nonResourceAttributes", path, "disallowed on this kind of request"))
    _refuse(kind, _AUTHORIZATION, causes)
    answer = _answer(kind, _AUTHORIZATION, spec, _access(_subject(spec), spec, authorizer))
    answer["metadata"] = {"namespace": namespace}
    return answer


def self_subject_rules_review(document: Document, user: User, authorizer: Authorizer) -> Document:
    """Answer "What may I do in this namespace?"."""
    spec = _spec(document)
    if not (namespace := _text(spec, "namespace")):
        raise BadRequest("no namespace on request")
    rules = authorizer.rules(user, namespace)
    incomplete = not authorizer.is_complete(user) or any(rule.but for rule in rules)
    status: Document = {
        "resourceRules": [_resource_rule(rule) for rule in rules if rule.resources],
        "nonResourceRules": [
            {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.urls)} for rule in rules if rule.urls
        ],
        "incomplete": incomplete,
    }
    if incomplete:
        status["evaluationError"] = "some permissions depend on the object and cannot be listed"
    return _answer("SelfSubjectRulesReview", _AUTHORIZATION, spec, status)


def _resource_rule(rule: Rule) -> Document:
    found = {"verbs": list(rule.verbs), "apiGroups": list(rule.groups), "resources": list(rule.resources)}
    return found | ({"resourceNames": list(rule.names)} if rule.names else {})


def _access(user: User, spec: Document, authorizer: Authorizer) -> Document:
    decision = authorizer.authorize(user, _attributes(spec))
    return {"allowed": decision.allowed} | ({"reason": decision.reason} if decision.reason else {})


def _attributes(spec: Document) -> Attributes:
    if (path := mapping(spec, "nonResourceAttributes")) is not None:
        return Attributes(_text(path, "verb").lower(), path=_text(path, "path"))
    asked = mapping(spec, "resourceAttributes") or {}
    keys = ("group", "version", "resource", "subresource", "namespace", "name")
    return Attributes(
        _text(asked, "verb"),
        **{key: _text(asked, key) for key in keys},
        field_selector=_field_selector(mapping(asked, "fieldSelector") or {}),
    )


def _field_selector(selector: Document) -> str:
    """Return the selector as a string. Requirements that a string cannot express are left out: they only narrow the
    request."""
    if raw := _text(selector, "rawSelector"):
        return raw
    return ",".join(
        f"{_text(one, 'key')}={escape(values[0])}"
        for one in mappings(selector, "requirements")
        if one.get("operator") == "In" and len(values := _texts(one.get("values"))) == 1
    )


def _subject(spec: Document) -> User:
    extra = mapping(spec, "extra") or {}
    return User(
        _text(spec, "user"),
        _text(spec, "uid"),
        _texts(spec.get("groups")),
        {key.lower(): _texts(values) for key, values in extra.items()},
    )


def _user_info(user: User) -> Document:
    info: Document = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info


def _attribute_causes(spec: Document) -> list[Cause]:
    resource, path = mapping(spec, "resourceAttributes"), mapping(spec, "nonResourceAttributes")
    if resource is not None and path is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        return [invalid("spec.nonResourceAttributes", path, detail)]
    if resource is None and path is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [invalid("spec.resourceAttributes", None, detail)]
    return []


def _subject_causes(spec: Document) -> list[Cause]:
    if _text(spec, "user") or _texts(spec.get("groups")):
        return []
    return [invalid("spec.user", "", "at least one of user or group must be specified")]


def _metadata_causes(document: Document, *allowed: str) -> list[Cause]:
    metadata = mapping(document, "metadata") or {}
    if any(value for key, value in metadata.items() if key not in ("creationTimestamp", "managedFields", *allowed)):
        detail = "must be empty" + (f" except for {', '.join(allowed)}" if allowed else "")
        return [invalid("metadata", metadata, detail)]
    return []


def _refuse(kind: str, group: str, causes: Iterable[Cause]) -> None:
    if found := list(causes):
        raise InvalidObject(f"{kind}.{group}", "", found)


def _answer(kind: str, group: str, spec: Document | None, status: Document) -> Document:
    answer: Document = {"kind": kind, "apiVersion": f"{group}/v1", "metadata": {}}
    if spec is not None:
        answer["spec"] = spec
    return answer | {"status": status}


def _spec(document: Document) -> Document:
    return mapping(document, "spec") or {}


def _text(parent: Document, key: str) -> str:
    value = parent.get(key)
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
