"""Whether an object keeps the rules of its kind, answered with the paths and reasons of a Kubernetes API server.

Pure, and without exceptions: what is wrong comes back as causes. Documents are in the storage version, defaulted, and
of the right JSON types; conversion, defaults and decoding come before.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from devlet.errors import MAX_CAUSES, Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.kinds import BUILT_IN, group_of
from devlet.objects.validation import (
    admin_access,
    claim,
    claim_status,
    claim_template,
    core,
    custom_resource_definition,
    device_class,
    event,
    metadata,
    pod,
    pod_update,
    pool_status_request,
    role,
    slice,
    taint_rule,
)
from devlet.objects.validation.field_errors import immutable, invalid
from devlet.objects.validation.selectors import SelectorCheck, SelectorWork, accept_any, no_work, within_budget

__all__ = ["Rules", "admission_errors", "validate_create", "validate_status_update", "validate_update", "warnings"]


@dataclass(frozen=True)
class Rules:
    """What the answer depends on besides the object."""

    check_selector: SelectorCheck = accept_any
    selector_work: SelectorWork = no_work
    api_version: str = ""  # the version the client used; only events differ

    def for_object(self) -> SelectorCheck:
        """Return the check for the selectors of the next object. All selectors of an object share a budget."""
        return within_budget(self.check_selector, self.selector_work)


_Check = Callable[[Document, Document | None, Rules], Iterator[Cause]]
_StatusCheck = Callable[[Document, Document], Iterator[Cause]]

_EVENTS_API = "events.k8s.io/v1"
_SCOPES = {(group_of(kind.storage_version), kind.kind): kind.namespaced for kind in BUILT_IN}
_NAME_RULES = {("", "Namespace"): names.dns_label, ("", "Service"): names.dns1035_label} | {
    ("rbac.authorization.k8s.io", kind): names.path_segment  # as in system:node
    for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
}


def validate_create(document: Document, rules: Rules) -> list[Cause]:
    return _validate(document, None, rules)


def validate_update(document: Document, old: Document, rules: Rules) -> list[Cause]:
    """For PUT and PATCH of the object itself; `old` is what is stored."""
    return _validate(document, old, rules)


def validate_status_update(document: Document, old: Document, rules: Rules) -> list[Cause]:
    """For writes to the status subresource, which leave the spec as it is stored."""
    causes = _check_metadata(document, old)
    if check := _STATUS_CHECKS.get(_key(document)):
        causes += check(document, old)
    return causes


def admission_errors(document: Document, old: Document | None, namespace: Document | None) -> list[Cause]:
    """What the namespace does not allow: on create (`old` is None) or in an update of a claim's status."""
    kind = _key(document)
    if old is None and kind in (_CLAIM, _TEMPLATE):
        return list(admin_access.check_create(document, namespace))
    if old is not None and kind == _CLAIM:
        return list(admin_access.check_status_update(document, old, namespace))
    return []


def warnings(document: Document, old: Document | None = None) -> list[str]:
    """What is accepted but should be otherwise."""
    kind = _key(document)
    if kind == _SLICE:
        return slice.warnings(document)
    if kind == _POD and old is not None:
        return pod_update.status_warnings(document, old)
    return []


def _key(document: Document) -> tuple[str, str]:
    return group_of(document.get("apiVersion", "")), document.get("kind", "")


def _validate(document: Document, old: Document | None, rules: Rules) -> list[Cause]:
    causes = _check_metadata(document, old)
    if check := _CHECKS.get(_key(document)):
        causes += islice(check(document, old, rules), MAX_CAUSES + 1)
    return causes


def _check_metadata(document: Document, old: Document | None) -> list[Cause]:
    kind, members = _key(document), document.get("metadata") or {}
    before = old.get("metadata") or {} if old is not None else None
    causes: list[Cause] = []
    if before is None or not metadata.is_checked(members, before):
        rule = _NAME_RULES.get(kind, names.dns_subdomain)
        causes += islice(metadata.check(members, rule, _SCOPES.get(kind)), MAX_CAUSES + 1)
    if before is not None:
        causes += metadata.check_update(members, before)
    return causes


def _check_pod(document: Document, old: Document | None, _: Rules) -> Iterator[Cause]:
    if old is not None:
        return pod_update.check(document, old)
    return _both(pod.check(document), pod.check_create(document))


def _check_claim(document: Document, old: Document | None, rules: Rules) -> Iterator[Cause]:
    spec = document.get("spec") or {}
    if old is not None:
        # What was accepted once is not judged again by newer rules.
        return immutable("spec", spec, old.get("spec") or {})
    return claim.check_spec(spec, "spec", rules.for_object())


def _check_template(document: Document, old: Document | None, rules: Rules) -> Iterator[Cause]:
    if old is not None:
        return claim_template.check_update(document, old)
    return claim_template.check(document, rules.for_object())


def _check_event(document: Document, old: Document | None, rules: Rules) -> Iterator[Cause]:
    if old is None and rules.api_version == _EVENTS_API:
        return _both(event.check(document), event.check_new_shape(document))
    return event.check(document)


def _check_binding(document: Document, old: Document | None, _: Rules) -> Iterator[Cause]:
    """Another role is another binding: whoever may change its subjects must not get the role of their choice."""
    if old is not None and document.get("roleRef") != old.get("roleRef"):
        yield invalid("roleRef", document.get("roleRef"), "cannot change roleRef")


def _check_pool_status_request(document: Document, old: Document | None, _: Rules) -> Iterator[Cause]:
    if old is not None:
        return pool_status_request.check_update(document, old)
    return pool_status_request.check(document)


def _both(first: Iterator[Cause], second: Iterator[Cause]) -> Iterator[Cause]:
    yield from first
    yield from second


def _always(check: Callable[[Document], Iterator[Cause]]) -> _Check:
    return lambda document, _old, _rules: check(document)


def _with_update(check: Callable[[Document], Iterator[Cause]], update: _StatusCheck) -> _Check:
    def run(document: Document, old: Document | None, _: Rules) -> Iterator[Cause]:
        return check(document) if old is None else _both(check(document), update(document, old))

    return run


_RESOURCE = "resource.k8s.io"
_POD = ("", "Pod")
_CLAIM = (_RESOURCE, "ResourceClaim")
_TEMPLATE = (_RESOURCE, "ResourceClaimTemplate")
_SLICE = (_RESOURCE, "ResourceSlice")
_TAINT_RULE = (_RESOURCE, "DeviceTaintRule")
_POOL_STATUS_REQUEST = (_RESOURCE, "ResourcePoolStatusRequest")

_CHECKS: dict[tuple[str, str], _Check] = {
    _POD: _check_pod,
    ("", "Node"): _always(core.check_node),
    ("", "Namespace"): _always(core.check_namespace),
    ("", "ConfigMap"): _with_update(core.check_config_map, core.check_config_map_update),
    ("", "Secret"): _with_update(core.check_secret, core.check_secret_update),
    ("", "Event"): _check_event,
    ("coordination.k8s.io", "Lease"): _always(core.check_lease),
    ("scheduling.k8s.io", "PriorityClass"): _with_update(core.check_priority_class, core.check_priority_class_update),
    ("rbac.authorization.k8s.io", "RoleBinding"): _check_binding,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _check_binding,
    ("rbac.authorization.k8s.io", "Role"): _always(role.check),
    ("rbac.authorization.k8s.io", "ClusterRole"): _always(role.check),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _with_update(
        custom_resource_definition.check, custom_resource_definition.check_update
    ),
    _CLAIM: _check_claim,
    _TEMPLATE: _check_template,
    _SLICE: lambda document, old, _: slice.check(document, old),
    (_RESOURCE, "DeviceClass"): lambda document, old, rules: device_class.check(document, old, rules.for_object()),
    _TAINT_RULE: lambda document, old, _: taint_rule.check(document, old),
    _POOL_STATUS_REQUEST: _check_pool_status_request,
}
_STATUS_CHECKS: dict[tuple[str, str], _StatusCheck] = {
    _POD: pod_update.check_status,
    ("", "Node"): lambda document, _: core.check_node_status(document),
    _CLAIM: claim_status.check_update,
    _TAINT_RULE: lambda document, _: taint_rule.check_status(document),
    _POOL_STATUS_REQUEST: pool_status_request.check_status_update,
}
