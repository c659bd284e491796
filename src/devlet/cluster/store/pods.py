"""The steps that only pods have: an account, a priority, scheduling gates, a grace period, binding and eviction."""

from collections.abc import Iterable
from datetime import datetime

from devlet.cluster.client import DeleteOptions, Preconditions
from devlet.cluster.store.records import Newest
from devlet.errors import BadRequest, Cause, Conflict, Forbidden, InvalidObject, TooManyRequests
from devlet.objects.documents import Document
from devlet.objects.kinds import PRIORITY_CLASSES
from devlet.objects.schema.shape import conform_kind
from devlet.objects.selectors import labels as label_selectors
from devlet.objects.validation.pod import MIRROR_ANNOTATION
from devlet.objects.values.timestamps import format_time

# The fields of spec that admission sets. If they had a manager, an apply that does not mention them would remove them.
ADMITTED_FIELDS = frozenset({"serviceAccountName", "serviceAccount", "priority", "preemptionPolicy", "tolerations"})
_GATED: Document = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def set_account(pod: Document) -> None:
    """Give the pod its service account. A mirror pod has none: its static pod runs without the cluster."""
    spec, annotations = pod["spec"], pod["metadata"].get("annotations") or {}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account or MIRROR_ANNOTATION not in annotations:
        spec["serviceAccountName"] = account or "default"


def report_gates(pod: Document, now: datetime) -> None:
    """Set the condition of a pod that has scheduling gates."""
    if pod["spec"].get("schedulingGates"):
        pod["status"] = with_condition(pod["status"], _GATED, now)


def set_priority(pod: Document, ledger: Newest) -> None:
    """Copy the priority from the pod's PriorityClass."""
    spec = pod["spec"]
    name = spec.get("priorityClassName")
    if not name:
        spec.setdefault("priority", 0)
        return
    record = ledger.newest(PRIORITY_CLASSES.kind, ("", name))
    if record is None:
        pod_name = pod["metadata"].get("name", "")
        message = f'pods "{pod_name}" is forbidden: no PriorityClass with name {name} was found'
        raise Forbidden(message, resource="pods", name=pod_name)
    spec["priority"] = record.document().get("value", 0)


def grace(pod: Document, options: DeleteOptions) -> int:
    """Return how many seconds the pod's node may take. A grace period that has begun only gets shorter."""
    spec, phase = pod.get("spec", {}), pod.get("status", {}).get("phase")
    asked = options.grace_period
    if asked is None:
        asked = spec.get("terminationGracePeriodSeconds", 0)
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        asked = 0
    if asked < 0:
        asked = 1
    begun: int | None = pod["metadata"].get("deletionGracePeriodSeconds")
    return asked if begun is None else min(asked, begun)


def count_deletion(pod: Document, is_first: bool) -> None:
    """Count the start of the deletion as a generation of the pod."""
    if is_first:
        pod["metadata"]["generation"] = pod["metadata"].get("generation", 0) + 1


def bind(pod: Document, binding: Document, now: datetime) -> Document:
    """The pod on its node. A pod is bound once."""
    name = pod["metadata"]["name"]
    binding = conform_kind(binding, "v1", "Binding")
    metadata, target = binding.get("metadata") or {}, binding.get("target") or {}
    _check_subject(pod, metadata, "Binding")
    _check_target(name, target)
    if "spec" not in pod:
        raise _conflict(name, f"pod {name} has values of the wrong type")
    if metadata.get("uid") and metadata["uid"] != pod["metadata"]["uid"]:
        raise _conflict(name, f"pod {name} has another UID than the binding ({metadata['uid']})")
    if pod["metadata"].get("deletionTimestamp"):
        raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if node := pod["spec"].get("nodeName"):
        raise _conflict(name, f'pod {name} is already assigned to node "{node}"')
    bound = {**pod, "metadata": dict(pod["metadata"]), "spec": {**pod["spec"], "nodeName": target["name"]}}
    for key in ("annotations", "labels"):
        if metadata.get(key):
            bound["metadata"][key] = {**bound["metadata"].get(key, {}), **metadata[key]}
    status = {k: v for k, v in pod.get("status", {}).items() if k != "nominatedNodeName"}
    bound["status"] = with_condition(status, {"type": "PodScheduled", "status": "True"}, now)
    return bound


def eviction_options(pod: Document, eviction: Document) -> DeleteOptions:
    """Return how the pod is deleted."""
    eviction = conform_kind(eviction, "policy/v1", "Eviction")
    _check_subject(pod, eviction.get("metadata") or {}, "Eviction")
    options = eviction.get("deleteOptions") or {}
    preconditions = options.get("preconditions") or {}
    return DeleteOptions(
        grace_period=options.get("gracePeriodSeconds"),
        preconditions=Preconditions(preconditions.get("uid"), preconditions.get("resourceVersion")),
        dry_run=bool(options.get("dryRun")),
    )


def check_budgets(pod: Document, budgets: Iterable[Document]) -> None:
    """TooManyRequests if a PodDisruptionBudget of the pod's namespace does not allow its eviction. A pod that does not
    run is not protected."""
    if (
        pod.get("status", {}).get("phase") in ("Succeeded", "Failed", "Pending")
        or "deletionTimestamp" in pod["metadata"]
    ):
        return
    labels = pod["metadata"].get("labels") or {}
    for budget in budgets:
        selector = (budget.get("spec") or {}).get("selector")
        allowed = (budget.get("status") or {}).get("disruptionsAllowed", 0)
        if allowed < 1 and label_selectors.from_document(selector).matches(labels):
            name = budget["metadata"]["name"]
            raise TooManyRequests(
                "Cannot evict pod as it would violate the pod's disruption budget."
                f" The disruption budget {name} does not allow it now",
                retry_after=10.0,
            )


def mark_evicted(pod: Document, now: datetime) -> Document:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    return {**pod, "status": with_condition(pod.get("status", {}), condition, now)}


def _check_subject(pod: Document, metadata: Document, kind: str) -> None:
    """Raise BadRequest if the metadata of a binding or an eviction names another pod than the URL."""
    if metadata.get("name") and metadata["name"] != pod["metadata"]["name"]:
        raise BadRequest(f"name in URL does not match name in {kind} object")
    if metadata.get("namespace") and metadata["namespace"] != pod["metadata"].get("namespace"):
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def _check_target(name: str, target: Document) -> None:
    if target.get("kind") not in (None, "", "Node"):
        text = f'Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
        raise InvalidObject("Binding", name, [Cause("FieldValueNotSupported", text, "target.kind")])
    if not target.get("name"):
        raise InvalidObject("Binding", name, [Cause("FieldValueRequired", "Required value", "target.name")])


def with_condition(status: Document, condition: Document, now: datetime) -> Document:
    stamped = {**condition, "lastProbeTime": None, "lastTransitionTime": format_time(now)}
    others = [c for c in status.get("conditions", []) if c.get("type") != condition["type"]]
    return {**status, "conditions": [*others, stamped]}


def _conflict(name: str, detail: str) -> Conflict:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {detail}'
    return Conflict(message, resource="pods/binding", name=name)
