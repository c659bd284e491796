"""The conditions of a pod that its node writes. Conditions of other writers are left alone.

A condition keeps the time of its last transition as long as its status stays the same.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from devlet.objects.documents import Document
from devlet.objects.types.pod import Pod

__all__ = ["Condition", "Facts", "conditions", "documents", "missing_gates"]

SCHEDULED = "PodScheduled"
READY_TO_START = "PodReadyToStartContainers"
INITIALIZED = "Initialized"
CONTAINERS_READY = "ContainersReady"
READY = "Ready"


class Condition(Struct, frozen=True):
    type: str
    status: bool
    reason: str = ""
    message: str = ""


class Facts(Struct, frozen=True):
    """`uninitialized` and `unready` are names of containers. `gates` has a text for each readiness gate that is not
    met."""

    phase: str
    sandbox: bool
    uninitialized: tuple[str, ...]
    unready: tuple[str, ...]
    gates: tuple[str, ...] = ()


def conditions(facts: Facts) -> list[Condition]:
    ready = _ready(facts)
    return [
        Condition(READY_TO_START, facts.sandbox),
        _initialized(facts),
        _pod_ready(ready, facts.gates),
        ready,
        Condition(SCHEDULED, True),
    ]


def _initialized(facts: Facts) -> Condition:
    if facts.phase == "Succeeded":
        return Condition(INITIALIZED, True, "PodCompleted")
    if facts.uninitialized:
        names = " ".join(facts.uninitialized)
        message = f"containers with incomplete status: [{names}]"
        return Condition(INITIALIZED, False, "ContainersNotInitialized", message)
    return Condition(INITIALIZED, True)


def _ready(facts: Facts) -> Condition:
    if facts.phase == "Succeeded":
        return Condition(CONTAINERS_READY, False, "PodCompleted")
    if facts.phase == "Failed":
        return Condition(CONTAINERS_READY, False, "PodFailed")
    if facts.unready:
        message = f"containers with unready status: [{' '.join(facts.unready)}]"
        return Condition(CONTAINERS_READY, False, "ContainersNotReady", message)
    return Condition(CONTAINERS_READY, True)


def _pod_ready(containers: Condition, gates: Sequence[str]) -> Condition:
    if containers.status and gates:
        return Condition(READY, False, "ReadinessGatesNotReady", ", ".join(gates))
    return Condition(READY, containers.status, containers.reason, containers.message)


def missing_gates(pod: Pod) -> tuple[str, ...]:
    """What is said of each readiness gate of the pod that is not open."""
    known = {each.type: each.status for each in pod.status.conditions}
    wanted = [each.condition_type for each in pod.spec.readiness_gates]
    return tuple(_gate(each, known.get(each)) for each in wanted if known.get(each) != "True")


def _gate(name: str, status: str | None) -> str:
    if status is None:
        return f'corresponding condition of pod readiness gate "{name}" does not exist.'
    return f'the status of pod readiness gate "{name}" is not "True", but {status}'


def documents(wanted: Iterable[Condition], before: Sequence[Document], now: str, generation: int) -> list[Document]:
    """Return the conditions as they are written. `before` are those that the pod has."""
    known = {each.get("type"): each for each in before}
    return [_document(each, known.get(each.type), now, generation) for each in wanted]


def _document(condition: Condition, before: Document | None, now: str, generation: int) -> Document:
    status = "True" if condition.status else "False"
    same = before is not None and before.get("status") == status
    since = (before or {}).get("lastTransitionTime") if same else None
    found = {
        "type": condition.type,
        "status": status,
        "observedGeneration": generation,
        "lastProbeTime": None,
        "lastTransitionTime": since or now,
        "reason": condition.reason,
        "message": condition.message,
    }
    return {key: value for key, value in found.items() if value or key == "lastProbeTime"}
