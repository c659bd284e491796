"""Rules for updates of a pod: which few fields of the spec may change, and that a status fits the spec."""

from typing import Any

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import pod, pod_toleration
from devlet.objects.validation.field_errors import (
    Causes,
    duplicates,
    forbidden,
    invalid,
    name_errors,
    required,
    required_name,
)

_MAY_CHANGE = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)
_TERMINAL = ("Succeeded", "Failed")


def check(document: Document, old: Document) -> Causes:
    spec, old_spec = document.get("spec") or {}, old.get("spec") or {}
    for member in ("containers", "initContainers"):
        if len(spec.get(member) or ()) != len(old_spec.get(member) or ()):
            yield forbidden(f"spec.{member}", "pod updates may not add or remove containers")
            return
        for i, container in enumerate(spec.get(member) or ()):
            if not container.get("image"):
                yield required(f"spec.{member}[{i}].image")
    yield from _check_deadline(spec, old_spec)
    yield from _check_tolerations(spec.get("tolerations") or [], old_spec.get("tolerations") or [])
    yield from _check_gates(spec.get("schedulingGates") or [], old_spec.get("schedulingGates") or [])
    if changed := _changed(spec, old_spec):
        fields = ", ".join(f"spec.{member}" for member in changed)
        yield forbidden("spec", f"pod updates may not change fields other than {_MAY_CHANGE}\nchanged: {fields}")


def check_status(document: Document, old: Document) -> Causes:
    spec, status = old.get("spec") or {}, document.get("status") or {}
    statuses, path = status.get("resourceClaimStatuses") or [], "status.resourceClaimStatuses"
    claims = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    for i, item in enumerate(statuses):
        name = item.get("name", "")
        if name not in claims:
            yield invalid(f"{path}[{i}].name", name, "must match the name of an entry in `spec.resourceClaims`")
        if item.get("resourceClaimName") is not None:
            yield from name_errors(f"{path}[{i}].resourceClaimName", item["resourceClaimName"], names.dns_subdomain)
    yield from duplicates(path, [item.get("name", "") for item in statuses])
    if status.get("extendedResourceClaimStatus") is not None:
        yield from _check_extended(status["extendedResourceClaimStatus"], "status.extendedResourceClaimStatus", spec)


def status_warnings(document: Document, old: Document) -> list[str]:
    phase = (document.get("status") or {}).get("phase", "")
    old_phase = (old.get("status") or {}).get("phase", "")
    if old_phase in _TERMINAL and phase not in _TERMINAL:
        return [f"status.phase: the pod is {old_phase}, which is final; it should not become {phase or 'unset'}"]
    return []


def _check_deadline(spec: Document, old_spec: Document) -> Causes:
    path, new, old = (
        "spec.activeDeadlineSeconds",
        spec.get("activeDeadlineSeconds"),
        old_spec.get("activeDeadlineSeconds"),
    )
    yield from pod.check_deadline(spec)
    if old is None or new == old:
        return
    if new is None:
        yield invalid(path, None, "must not update from a positive integer to nil value")
    elif new > old:
        yield invalid(path, new, "must be less than or equal to previous value")


def _check_tolerations(tolerations: list[Document], old: list[Document]) -> Causes:
    if tolerations == old:
        return
    kept = [_without_seconds(toleration) for toleration in tolerations]
    if any(_without_seconds(toleration) not in kept for toleration in old):
        yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
    yield from pod_toleration.check(tolerations, "spec.tolerations")


def _without_seconds(toleration: Document) -> Document:
    return {member: value for member, value in toleration.items() if member != "tolerationSeconds"}


def _check_gates(gates: list[Document], old: list[Document]) -> Causes:
    before = {gate.get("name") for gate in old}
    for gate in gates:
        if gate.get("name") not in before:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'"
            yield forbidden("spec.schedulingGates", detail)


def _changed(spec: Document, old: Document) -> list[str]:
    """Return the fields that changed, except those that may change."""
    new, old = _fixed(spec), _fixed(old)
    grace = "terminationGracePeriodSeconds"
    if (old.get(grace) or 0) < 0 and new.get(grace) == 1:
        new[grace] = old[grace]
    return sorted(member for member in new.keys() | old.keys() if new.get(member) != old.get(member))


def _fixed(spec: Document) -> Document:
    fixed: dict[str, Any] = {**spec}
    for member in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        fixed.pop(member, None)
    for member in ("containers", "initContainers"):
        if fixed.get(member):
            fixed[member] = [{**container, "image": ""} for container in fixed[member]]
    return fixed


def _check_extended(status: Document, path: str, spec: Document) -> Causes:
    yield from required_name(f"{path}.resourceClaimName", status.get("resourceClaimName", ""), names.dns_subdomain)
    mappings = status.get("requestMappings") or []
    if not mappings:
        yield required(f"{path}.requestMappings", "at least one request mapping is required")
    wanted = _extended_requests(spec)
    for i, mapping in enumerate(mappings):
        item = f"{path}.requestMappings[{i}]"
        container, resource = mapping.get("containerName", ""), mapping.get("resourceName", "")
        if container not in wanted:
            detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            yield invalid(f"{item}.containerName", container, detail)
        elif resource not in wanted[container]:
            yield invalid(f"{item}.resourceName", resource, f"must be a resource that container {container} requests")
        yield from required_name(f"{item}.requestName", mapping.get("requestName", ""), names.dns_label)
    members = ("containerName", "resourceName", "requestName")
    triples = ["/".join(mapping.get(member, "") for member in members) for mapping in mappings]
    yield from duplicates(f"{path}.requestMappings", triples)


def _extended_requests(spec: Document) -> dict[str, set[str]]:
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return {
        container.get("name", ""): set((container.get("resources") or {}).get("requests") or ())
        for container in containers
    }
