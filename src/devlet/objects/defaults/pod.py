"""Defaults of a pod: its spec, containers, probes and the first status.

The service account and its volume, and the priority of a named or global PriorityClass, depend on other objects.
Admission sets them before these defaults apply. All functions modify the document that they are given.
"""

from devlet.objects.defaults.image import pull_policy
from devlet.objects.defaults.volume import default_field_selectors, default_volume
from devlet.objects.documents import Document
from devlet.objects.pods.qos import qos_class
from devlet.objects.subdocuments import ensure, fill, fill_empty, is_empty, mapping, mappings

__all__ = ["default_pod"]

TERMINATION_GRACE_SECONDS = 30
TOLERATED_SECONDS = 300
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def default_pod(pod: Document, old: Document | None) -> None:
    spec = ensure(pod, "spec")
    if old is None or spec != old.get("spec"):
        _default_spec(spec)
    _default_status(pod, old)


def _default_spec(spec: Document) -> None:
    _default_members(spec)
    for key in ("containers", "initContainers", "ephemeralContainers"):
        for container in mappings(spec, key):
            _default_container(container)
            # Ephemeral containers can have neither resources nor ports.
            if key != "ephemeralContainers":
                _default_requests(container)
                _default_ports(container, host_network=spec.get("hostNetwork") is True)
    for volume in mappings(spec, "volumes"):
        default_volume(volume)
    _default_tolerations(spec)


def _default_members(spec: Document) -> None:
    fill_empty(spec, "restartPolicy", "Always")
    fill(spec, "terminationGracePeriodSeconds", TERMINATION_GRACE_SECONDS)
    fill_empty(spec, "dnsPolicy", "ClusterFirst")
    fill(spec, "securityContext", {})
    fill_empty(spec, "schedulerName", "default-scheduler")
    fill(spec, "enableServiceLinks", True)
    if is_empty(spec.get("priorityClassName")):
        fill(spec, "priority", 0)
        fill(spec, "preemptionPolicy", "PreemptLowerPriority")
    _mirror_service_account(spec)


def _mirror_service_account(spec: Document) -> None:
    """Keep `serviceAccount`, the old name of the field, equal to the new one. The new one wins."""
    if name := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _default_container(container: Document) -> None:
    fill_empty(container, "imagePullPolicy", pull_policy(container.get("image")))
    fill_empty(container, "terminationMessagePath", "/dev/termination-log")
    fill_empty(container, "terminationMessagePolicy", "File")
    fill(container, "resources", {})
    for port in mappings(container, "ports"):
        fill_empty(port, "protocol", "TCP")
    _default_env(container)
    for key in _PROBES:
        if (probe := mapping(container, key)) is not None:
            _default_probe(probe)
    lifecycle = mapping(container, "lifecycle") or {}
    for key in ("postStart", "preStop"):
        _default_http(mapping(lifecycle, key) or {})


def _default_env(container: Document) -> None:
    sources = [source for env in mappings(container, "env") if (source := mapping(env, "valueFrom")) is not None]
    default_field_selectors({"sources": sources}, "sources")
    for source in sources:
        if (file := mapping(source, "fileKeyRef")) is not None:
            fill(file, "optional", False)


def _default_probe(probe: Document) -> None:
    for key, value in _PROBE.items():
        fill_empty(probe, key, value)
    _default_http(probe)
    if (grpc := mapping(probe, "grpc")) is not None:
        fill(grpc, "service", "")


def _default_http(handler: Document) -> None:
    if (http := mapping(handler, "httpGet")) is not None:
        fill_empty(http, "path", "/")
        fill_empty(http, "scheme", "HTTP")


def _default_requests(container: Document) -> None:
    """Set missing requests to the limits. This includes extended resources."""
    resources = mapping(container, "resources") or {}
    if (limits := mapping(resources, "limits")) is not None:
        requests = ensure(resources, "requests")
        for name, limit in limits.items():
            fill(requests, name, limit)


def _default_ports(container: Document, *, host_network: bool) -> None:
    for port in mappings(container, "ports") if host_network else ():
        if not is_empty(port.get("containerPort")):
            fill_empty(port, "hostPort", port["containerPort"])


def _default_tolerations(spec: Document) -> None:
    """Let a pod stay for some time on a node that is unreachable or not ready, unless the pod says otherwise."""
    missing = [key for key in _TOLERATED if not _tolerates(spec, key)]
    if missing and isinstance(spec.get("tolerations") or [], list):
        spec["tolerations"] = [*(spec.get("tolerations") or []), *map(_toleration, missing)]


def _tolerates(spec: Document, key: str) -> bool:
    return any(
        toleration.get("key") in (key, "", None) and toleration.get("effect") in ("NoExecute", "", None)
        for toleration in mappings(spec, "tolerations")
    )


def _toleration(key: str) -> Document:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATED_SECONDS}


def _default_status(pod: Document, old: Document | None) -> None:
    status = ensure(pod, "status")
    if old is None:
        fill_empty(status, "phase", "Pending")
    if is_empty(status.get("qosClass")):
        status["qosClass"] = (mapping(old or {}, "status") or {}).get("qosClass") or qos_class(pod)
