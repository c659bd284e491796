"""Rules for Pod.spec: the common errors that users of kubectl expect to be rejected, and all rules for claims and
extended resources.

Fields that devlet does not use (probes, security contexts, the contents of volume sources) are kept unchecked.
"""

from devlet.objects import names
from devlet.objects.documents import Document, count_objects
from devlet.objects.validation import container, node_selector, pod_affinity, pod_toleration
from devlet.objects.validation.field_errors import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    name_errors,
    not_supported,
    required,
    required_name,
    too_many,
)
from devlet.objects.validation.metadata import check_labels

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
DEADLINE_MAX = 2**31 - 1
# containers, ports, variables, volumes and so on; limited because the event loop processes all of them
SPEC_OBJECTS_MAX = 8_000

_ENUMS = (
    ("restartPolicy", ("Always", "OnFailure", "Never")),
    ("dnsPolicy", ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")),
)
_NAMES = (
    ("nodeName", names.dns_subdomain),
    ("serviceAccountName", names.dns_subdomain),
    ("priorityClassName", names.dns_subdomain),
    ("hostname", names.dns_label),
    ("subdomain", names.dns_label),
)


def check(document: Document) -> Causes:
    spec = document.get("spec") or {}
    if volumes := spec.get("volumes"):
        yield from _check_volumes(volumes, "spec.volumes")
    if claims := spec.get("resourceClaims"):
        yield from _check_resource_claims(claims, "spec.resourceClaims")
    yield from _check_containers(spec)
    for member, supported in _ENUMS:
        if spec.get(member) not in supported:
            yield from _check_enum(spec, member, supported)
    for member, rule in _NAMES:
        if spec.get(member):
            yield from name_errors(f"spec.{member}", spec[member], rule)
    if labels := spec.get("nodeSelector"):
        yield from check_labels(labels, "spec.nodeSelector")
    if affinity := spec.get("affinity"):
        yield from _check_node_affinity(affinity.get("nodeAffinity") or {})
        for member in ("podAffinity", "podAntiAffinity"):
            yield from pod_affinity.check(affinity.get(member) or {}, f"spec.affinity.{member}")
    if tolerations := spec.get("tolerations"):
        yield from pod_toleration.check(tolerations, "spec.tolerations")
    yield from check_deadline(spec)
    annotations = (document.get("metadata") or {}).get("annotations") or {}
    if MIRROR_ANNOTATION in annotations and spec.get("resourceClaims"):
        yield forbidden("spec.resourceClaims", "static pods do not support resource claims")


def check_create(document: Document) -> Causes:
    """Check the rules that apply only to a new pod."""
    spec = document.get("spec") or {}
    if (objects := count_objects(spec)) > SPEC_OBJECTS_MAX:
        yield too_many("spec", objects, SPEC_OBJECTS_MAX)
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    for i, gate in enumerate(spec.get("schedulingGates") or ()):
        yield from name_errors(f"spec.schedulingGates[{i}]", gate.get("name", ""), names.qualified_name)


def check_deadline(spec: Document) -> Causes:
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= DEADLINE_MAX:
        yield invalid("spec.activeDeadlineSeconds", deadline, f"must be between 1 and {DEADLINE_MAX}, inclusive")


def _check_enum(spec: Document, member: str, supported: tuple[str, ...]) -> Causes:
    value = spec.get(member, "")
    if not value:
        yield required(f"spec.{member}")
    else:
        yield not_supported(f"spec.{member}", value, supported)


def _check_volumes(volumes: list[Document], path: str) -> Causes:
    seen = set()
    for i, volume in enumerate(volumes):
        name = volume.get("name", "")
        yield from required_name(f"{path}[{i}].name", name, names.dns_label)
        if name and name in seen:
            yield duplicate(f"{path}[{i}].name", name)
        seen.add(name)
        sources = [member for member, value in volume.items() if member != "name" and value is not None]
        if not sources:
            yield required(f"{path}[{i}]", "must specify a volume type")
        for source in sources[1:]:
            yield forbidden(f"{path}[{i}].{source}", "may not specify more than 1 volume type")


def _check_resource_claims(claims: list[Document], path: str) -> Causes:
    seen = set()
    for i, claim in enumerate(claims):
        name = claim.get("name", "")
        yield from required_name(f"{path}[{i}].name", name, names.dns_label)
        if name and name in seen:
            yield duplicate(f"{path}[{i}].name", name)
        seen.add(name)
        sources = [m for m in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(m) is not None]
        if not sources:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield invalid(f"{path}[{i}]", claim, detail)
        elif len(sources) > 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid(f"{path}[{i}]", claim, detail)
        for member in sources:
            yield from name_errors(f"{path}[{i}].{member}", claim[member], names.dns_subdomain)


def _check_containers(spec: Document) -> Causes:
    surroundings = container.Surroundings(
        volumes=frozenset(volume.get("name", "") for volume in spec.get("volumes") or ()),
        claims=frozenset(claim.get("name", "") for claim in spec.get("resourceClaims") or ()),
    )
    if not spec.get("containers"):
        yield required("spec.containers")
    seen: set[str] = set()
    for member in ("initContainers", "containers"):
        for i, item in enumerate(spec.get(member) or ()):
            path = f"spec.{member}[{i}]"
            yield from container.check(item, path, surroundings)
            name = item.get("name", "")
            if name and name in seen:
                yield duplicate(f"{path}.name", name)
            seen.add(name)


def _check_node_affinity(affinity: Document) -> Causes:
    path = "spec.affinity.nodeAffinity"
    needed = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if needed is not None:
        yield from node_selector.check(needed, f"{path}.requiredDuringSchedulingIgnoredDuringExecution")
    for i, item in enumerate(affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
        item_path = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{i}]"
        if not 1 <= item.get("weight", 0) <= 100:
            yield invalid(f"{item_path}.weight", item.get("weight", 0), "must be in the range 1-100")
        yield from node_selector.check_term(item.get("preference") or {}, f"{item_path}.preference")
