"""The rules of each kind: defaults, validation and warnings.

Everything that is special about a kind, as far as its document alone tells, is in the table `RULES`. Kinds that are
not in the table, custom resources among them, have no defaults, and only their metadata is checked.

Documents are in the storage version and of the right JSON types. To validate them, set the defaults first. Validation
raises nothing: what is wrong comes back as causes, with the paths and reasons of a Kubernetes API server.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from devlet.errors import MAX_CAUSES, Cause
from devlet.objects import names
from devlet.objects.defaults import core as defaults
from devlet.objects.defaults import resource as defaults_resource
from devlet.objects.defaults.pod import default_pod
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

__all__ = [
    "Rules",
    "admission_errors",
    "default",
    "validate_create",
    "validate_status_update",
    "validate_update",
    "warnings",
]


@dataclass(frozen=True)
class Rules:
    """The settings of validation, besides the object."""

    check_selector: SelectorCheck = accept_any
    selector_work: SelectorWork = no_work
    api_version: str = ""  # the version that the client used; it matters only for events

    def for_object(self) -> SelectorCheck:
        """Return the check for the selectors of the next object. All selectors of an object share a budget."""
        return within_budget(self.check_selector, self.selector_work)


Default = Callable[[Document, datetime, Document | None], None]
"""Modifies the new object. Takes the time of the write and, on an update, the stored object."""
Check = Callable[[Document, Document | None, Rules], Iterator[Cause]]
"""Takes the new object and, on an update, the stored object."""
StatusCheck = Callable[[Document, Document], Iterator[Cause]]
"""Takes the new and the stored object."""


def _no_default(_document: Document, _now: datetime, _old: Document | None) -> None:
    """Change nothing."""


def _accept(*_: object) -> Iterator[Cause]:
    return iter(())


def _no_warnings(*_: object) -> list[str]:
    return []


@dataclass(frozen=True, slots=True)
class KindRules:
    """The rules of one kind. Those that it does not set are the same for all kinds."""

    default: Default = _no_default
    check_name: names.Rule = names.dns_subdomain
    check: Check = _accept
    check_status: StatusCheck = _accept  # for writes to the status subresource
    # These checks get the object's namespace as their last argument; the second runs on every update.
    admit_create: Callable[[Document, Document | None], Iterator[Cause]] = _accept
    admit_update: Callable[[Document, Document, Document | None], Iterator[Cause]] = _accept
    warn: Callable[[Document, Document | None], list[str]] = _no_warnings


def default(document: Document, *, now: datetime, old: Document | None = None) -> Document:
    """Set the defaults of a document in place and return it.

    Defaults are applied on every write and are idempotent: a stored object has them all, so an update only adds what
    the client's document lacks. `old` is the stored object on an update and None on a create; it is only read. `now`
    has a time zone. The name of the object must be set. Values of the wrong shape stay as they are.
    """
    _rules_of(document).default(document, now, old)
    return document


def validate_create(document: Document, rules: Rules) -> list[Cause]:
    return _validate(document, None, rules)


def validate_update(document: Document, old: Document, rules: Rules) -> list[Cause]:
    """Check a PUT or PATCH of the object itself; `old` is the stored object."""
    return _validate(document, old, rules)


def validate_status_update(document: Document, old: Document, rules: Rules) -> list[Cause]:
    """Check a write to the status subresource, which leaves the spec as it is stored."""
    return [*_check_metadata(document, old), *_rules_of(document).check_status(document, old)]


def admission_errors(document: Document, old: Document | None, namespace: Document | None) -> list[Cause]:
    """Return what the namespace does not allow, on create (`old` is None) or on an update."""
    rules = _rules_of(document)
    found = rules.admit_create(document, namespace) if old is None else rules.admit_update(document, old, namespace)
    return list(found)


def warnings(document: Document, old: Document | None = None) -> list[str]:
    """Return warnings about an object that is accepted."""
    return _rules_of(document).warn(document, old)


def _key(document: Document) -> tuple[object, object]:
    return group_of(document.get("apiVersion", "")), document.get("kind", "")


def _rules_of(document: Document) -> KindRules:
    return RULES.get(_key(document), _DEFAULT)


def _validate(document: Document, old: Document | None, rules: Rules) -> list[Cause]:
    found = _rules_of(document).check(document, old, rules)
    return [*_check_metadata(document, old), *islice(found, MAX_CAUSES + 1)]


def _check_metadata(document: Document, old: Document | None) -> list[Cause]:
    key, fields = _key(document), document.get("metadata") or {}
    before = old.get("metadata") or {} if old is not None else None
    causes: list[Cause] = []
    if before is None or not metadata.is_checked(fields, before):
        found = metadata.check(fields, _rules_of(document).check_name, _SCOPES.get(key))
        causes += islice(found, MAX_CAUSES + 1)
    if before is not None:
        causes += metadata.check_update(fields, before)
    return causes


def _check_pod(document: Document, old: Document | None, _: Rules) -> Iterator[Cause]:
    if old is not None:
        return pod_update.check(document, old)
    return _both(pod.check(document), pod.check_create(document))


def _check_claim(document: Document, old: Document | None, rules: Rules) -> Iterator[Cause]:
    spec = document.get("spec") or {}
    if old is not None:
        # Newer rules do not apply to parts that were accepted earlier.
        return immutable("spec", spec, old.get("spec") or {})
    return claim.check_spec(spec, "spec", rules.for_object())


def _check_template(document: Document, old: Document | None, rules: Rules) -> Iterator[Cause]:
    if old is not None:
        return claim_template.check_update(document, old)
    return claim_template.check(document, rules.for_object())


def _check_event(document: Document, old: Document | None, rules: Rules) -> Iterator[Cause]:
    if old is None and rules.api_version == "events.k8s.io/v1":
        return _both(event.check(document), event.check_new_shape(document))
    return event.check(document)


def _check_binding(document: Document, old: Document | None, _: Rules) -> Iterator[Cause]:
    """Reject a change of the role. Otherwise, a user who may only change the subjects could choose any role."""
    if old is not None and document.get("roleRef") != old.get("roleRef"):
        yield invalid("roleRef", document.get("roleRef"), "cannot change roleRef")


def _check_pool_status_request(document: Document, old: Document | None, _: Rules) -> Iterator[Cause]:
    if old is not None:
        return pool_status_request.check_update(document, old)
    return pool_status_request.check(document)


def _warn_of_pod(document: Document, old: Document | None) -> list[str]:
    return pod_update.status_warnings(document, old) if old is not None else []


def _both(first: Iterator[Cause], second: Iterator[Cause]) -> Iterator[Cause]:
    yield from first
    yield from second


def _plain(change: Callable[[Document], None]) -> Default:
    return lambda document, _now, _old: change(document)


def _always(check: Callable[[Document], Iterator[Cause]]) -> Check:
    return lambda document, _old, _rules: check(document)


def _with_update(check: Callable[[Document], Iterator[Cause]], update: StatusCheck) -> Check:
    def run(document: Document, old: Document | None, _: Rules) -> Iterator[Cause]:
        return check(document) if old is None else _both(check(document), update(document, old))

    return run


_DEFAULT = KindRules()
_SCOPES: dict[tuple[object, object], bool] = {
    (group_of(kind.storage_version), kind.kind): kind.namespaced for kind in BUILT_IN
}
_ROLE = KindRules(check_name=names.path_segment, check=_always(role.check))  # a name may have a colon: system:node
_BINDING = KindRules(check_name=names.path_segment, check=_check_binding)

# By group and kind.
RULES: dict[tuple[object, object], KindRules] = {
    ("", "Pod"): KindRules(
        default=lambda document, _now, old: default_pod(document, old),
        check=_check_pod,
        check_status=pod_update.check_status,
        warn=_warn_of_pod,
    ),
    ("", "Node"): KindRules(
        default=_plain(defaults.default_node),
        check=_always(core.check_node),
        check_status=lambda document, _old: core.check_node_status(document),
    ),
    ("", "Namespace"): KindRules(
        default=defaults.default_namespace, check_name=names.dns_label, check=_always(core.check_namespace)
    ),
    ("", "ConfigMap"): KindRules(check=_with_update(core.check_config_map, core.check_config_map_update)),
    ("", "Secret"): KindRules(
        default=_plain(defaults.default_secret), check=_with_update(core.check_secret, core.check_secret_update)
    ),
    ("", "Event"): KindRules(default=_plain(defaults.default_event), check=_check_event),
    ("", "Service"): KindRules(default=_plain(defaults.default_service), check_name=names.dns1035_label),
    ("", "PersistentVolume"): KindRules(default=_plain(defaults.default_volume)),
    ("", "PersistentVolumeClaim"): KindRules(default=_plain(defaults.default_volume_claim)),
    ("storage.k8s.io", "StorageClass"): KindRules(default=_plain(defaults.default_storage_class)),
    ("coordination.k8s.io", "Lease"): KindRules(check=_always(core.check_lease)),
    ("scheduling.k8s.io", "PriorityClass"): KindRules(
        default=_plain(defaults.default_priority_class),
        check=_with_update(core.check_priority_class, core.check_priority_class_update),
    ),
    ("rbac.authorization.k8s.io", "Role"): _ROLE,
    ("rbac.authorization.k8s.io", "ClusterRole"): _ROLE,
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): KindRules(
        check=_with_update(custom_resource_definition.check, custom_resource_definition.check_update)
    ),
    ("resource.k8s.io", "ResourceClaim"): KindRules(
        default=_plain(defaults_resource.default_claim),
        check=_check_claim,
        check_status=claim_status.check_update,
        admit_create=admin_access.check_create,
        admit_update=admin_access.check_status_update,
    ),
    ("resource.k8s.io", "ResourceClaimTemplate"): KindRules(
        default=_plain(defaults_resource.default_template),
        check=_check_template,
        admit_create=admin_access.check_create,
    ),
    ("resource.k8s.io", "ResourceSlice"): KindRules(
        default=lambda document, now, _old: defaults_resource.default_slice(document, now),
        check=lambda document, old, _rules: slice.check(document, old),
        warn=lambda document, _old: slice.warnings(document),
    ),
    ("resource.k8s.io", "DeviceClass"): KindRules(
        check=lambda document, old, rules: device_class.check(document, old, rules.for_object())
    ),
    ("resource.k8s.io", "DeviceTaintRule"): KindRules(
        default=defaults_resource.default_taint_rule,
        check=lambda document, old, _rules: taint_rule.check(document, old),
        check_status=lambda document, _old: taint_rule.check_status(document),
    ),
    ("resource.k8s.io", "ResourcePoolStatusRequest"): KindRules(
        default=_plain(defaults_resource.default_pool_status_request),
        check=_check_pool_status_request,
        check_status=pool_status_request.check_status_update,
    ),
}
