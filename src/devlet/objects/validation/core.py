"""Rules for the other core kinds that devlet stores: nodes, namespaces, configuration, leases, priorities."""

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation.amounts import check_not_negative
from devlet.objects.validation.field_errors import (
    Causes,
    byte_length,
    duplicate,
    forbidden,
    immutable,
    invalid,
    name_errors,
    not_supported,
    required,
    required_name,
    too_long,
)

DATA_MAX = 1024 * 1024
USER_PRIORITY_MAX = 1_000_000_000

_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_SYSTEM_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_SECRET_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_TOKEN_SECRET = "kubernetes.io/service-account-token"
_SERVICE_ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"


def check_node(document: Document) -> Causes:
    seen = set()
    for i, taint in enumerate((document.get("spec") or {}).get("taints") or ()):
        path, key, effect = f"spec.taints[{i}]", taint.get("key", ""), taint.get("effect", "")
        yield from name_errors(f"{path}.key", key, names.label_key)
        yield from name_errors(f"{path}.value", taint.get("value", ""), names.label_value)
        if not effect:
            yield required(f"{path}.effect")
        elif effect not in _TAINT_EFFECTS:
            yield not_supported(f"{path}.effect", effect, _TAINT_EFFECTS)
        if (key, effect) in seen:
            yield duplicate(path, taint)
        seen.add((key, effect))
    yield from check_node_status(document)


def check_node_status(document: Document) -> Causes:
    for member in ("capacity", "allocatable"):
        for name, amount in ((document.get("status") or {}).get(member) or {}).items():
            path = f"status.{member}[{name}]"
            yield from name_errors(path, name, names.qualified_name)
            if cause := check_not_negative(path, amount):
                yield cause


def check_namespace(document: Document) -> Causes:
    for i, finalizer in enumerate((document.get("spec") or {}).get("finalizers") or ()):
        path = f"spec.finalizers[{i}]"
        yield from name_errors(path, finalizer, names.qualified_name)
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            yield invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified")


def check_config_map(document: Document) -> Causes:
    data, binary = document.get("data") or {}, document.get("binaryData") or {}
    yield from _check_keys(data, "data")
    yield from _check_keys(binary, "binaryData")
    for key in data.keys() & binary.keys():
        yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    if sum(map(byte_length, data.values())) + _decoded_size(binary) > DATA_MAX:
        yield too_long("data", DATA_MAX)


def check_config_map_update(document: Document, old: Document) -> Causes:
    yield from _check_kept(document, old, ("data", "binaryData"))


def check_secret(document: Document) -> Causes:
    data, type_ = document.get("data") or {}, document.get("type", "")
    yield from _check_keys(data, "data")
    if _decoded_size(data) > DATA_MAX:
        yield too_long("data", DATA_MAX)
    for key in _SECRET_KEYS.get(type_, ()):
        if key not in data:
            yield required(f"data[{key}]")
    if type_ == _TOKEN_SECRET:
        annotations = (document.get("metadata") or {}).get("annotations") or {}
        if not annotations.get(_SERVICE_ACCOUNT_ANNOTATION):
            yield required(f"metadata.annotations[{_SERVICE_ACCOUNT_ANNOTATION}]")


def check_secret_update(document: Document, old: Document) -> Causes:
    yield from immutable("type", document.get("type", ""), old.get("type", ""))
    yield from _check_kept(document, old, ("data",))


def check_lease(document: Document) -> Causes:
    spec = document.get("spec") or {}
    # An empty holderIdentity is valid: older leader elections release a lease that way.
    if (duration := spec.get("leaseDurationSeconds")) is not None and duration <= 0:
        yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if (transitions := spec.get("leaseTransitions")) is not None and transitions < 0:
        yield invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")


def check_priority_class(document: Document) -> Causes:
    name, value = (document.get("metadata") or {}).get("name", ""), document.get("value", 0)
    if name.startswith("system-"):
        if _SYSTEM_PRIORITIES.get(name) != value:
            detail = f"priority class names with 'system-' prefix are reserved for system use only. error: {name}"
            yield forbidden("metadata.name", detail)
    elif value > USER_PRIORITY_MAX:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}")
    policy = document.get("preemptionPolicy")
    if policy and policy not in _PREEMPTION_POLICIES:
        yield not_supported("preemptionPolicy", policy, _PREEMPTION_POLICIES)


def check_priority_class_update(document: Document, old: Document) -> Causes:
    if document.get("value", 0) != old.get("value", 0):
        yield forbidden("value", "may not be changed in an update.")
    yield from immutable("preemptionPolicy", document.get("preemptionPolicy"), old.get("preemptionPolicy"))


def _check_keys(data: dict[str, str], path: str) -> Causes:
    for key in data:
        yield from required_name(f"{path}[{key}]", key, names.config_key)


def _decoded_size(data: dict[str, str]) -> int:
    """Return the decoded size of base64 texts."""
    return sum(len(text) // 4 * 3 - text[-2:].count("=") for text in data.values())


def _check_kept(document: Document, old: Document, members: tuple[str, ...]) -> Causes:
    if not old.get("immutable"):
        return
    if not document.get("immutable"):
        yield forbidden("immutable", "field is immutable when `immutable` is set")
    for member in members:
        if (document.get(member) or {}) != (old.get(member) or {}):
            yield forbidden(member, "field is immutable when `immutable` is set")
