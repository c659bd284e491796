"""The row of a pod. `STATUS` is not the phase, but the most informative word of phase, reason and containers.

phase, or status.reason, or SchedulingGated
  → if an init container is not done: Init:… (and the main containers are ignored)
  → else the reason of the first container that waits or has ended (a running or failed container, and the reason of a
    failed pod, take precedence over Completed)
→ a pod that is being deleted is Terminating until it has ended
"""

from dataclasses import dataclass
from datetime import datetime

from devlet.objects.documents import Document
from devlet.objects.subdocuments import at, mappings, name, number, text
from devlet.objects.table_cells import (
    AGE,
    NAME,
    NONE,
    Cell,
    Column,
    Printer,
    age,
    duration,
    instant,
    none_if_empty,
    wide,
)

__all__ = ["PODS"]


@dataclass(frozen=True, slots=True)
class _Containers:
    """The relevant container statuses. `undone` is the current init container, the last of `init`. While there is one,
    nothing is known about the `main` containers, unless the pod says that it is initialized."""

    init: list[Document]
    undone: Document | None
    main: list[Document] | None
    sidecars: set[str]

    @property
    def beside(self) -> list[Document]:
        """Return the statuses of the sidecars: init containers that keep running."""
        return [status for status in self.init if text(status, "name") in self.sidecars]


def _containers(pod: Document) -> _Containers:
    specs = mappings(pod, "spec", "initContainers")
    sidecars = {text(container, "name") for container in specs if container.get("restartPolicy") == "Always"}
    init = mappings(pod, "status", "initContainerStatuses")
    undone = next((i for i, status in enumerate(init) if not _is_done(status, sidecars)), None)
    main = mappings(pod, "status", "containerStatuses")
    if undone is None:
        return _Containers(init, None, main, sidecars)
    initialized = _condition(pod, "Initialized").get("status") == "True"
    return _Containers(init[: undone + 1], init[undone], main if initialized else None, sidecars)


def _is_done(status: Document, sidecars: set[str]) -> bool:
    """Return whether the next init container may start."""
    return _has_succeeded(status) or (text(status, "name") in sidecars and status.get("started") is True)


def _has_succeeded(status: Document) -> bool:
    return at(status, "state", "terminated") is not None and not number(status, "state", "terminated", "exitCode")


def _cells(pod: Document, now: datetime) -> list[Cell]:
    containers = _containers(pod)
    addresses = [text(entry, "ip") for entry in mappings(pod, "status", "podIPs")]
    return [
        name(pod),
        _ready(pod, containers),
        _status(pod, containers),
        _restarts(containers, now),
        age(pod, now),
        none_if_empty(addresses[0] if addresses else text(pod, "status", "podIP")),
        none_if_empty(text(pod, "spec", "nodeName")),
        none_if_empty(text(pod, "status", "nominatedNodeName")),
        _gates(pod),
    ]


def _ready(pod: Document, containers: _Containers) -> str:
    total = len(mappings(pod, "spec", "containers")) + len(containers.sidecars)
    started = [status for status in containers.beside if status is not containers.undone]
    ready = sum(not _has_succeeded(status) and status.get("ready") is True for status in started)
    return f"{ready + sum(_is_up(status) for status in containers.main or [])}/{total}"


def _status(pod: Document, containers: _Containers) -> str:
    phase, reason = text(pod, "status", "phase"), text(pod, "status", "reason")
    if at(pod, "metadata", "deletionTimestamp"):
        if reason == "NodeLost":
            return "Unknown"
        if phase not in ("Succeeded", "Failed"):
            return "Terminating"
    word = reason or phase
    if _condition(pod, "PodScheduled").get("reason") == "SchedulingGated":
        word = "SchedulingGated"
    if containers.undone:
        word = f"Init:{_init_word(pod, containers, containers.undone)}"
    return _main_word(pod, containers.main or [], word)


def _init_word(pod: Document, containers: _Containers, undone: Document) -> str:
    if at(undone, "state", "terminated") is not None:
        return _end_word(undone)
    if (waiting := text(undone, "state", "waiting", "reason")) and waiting != "PodInitializing":
        return waiting
    return f"{len(containers.init) - 1}/{len(mappings(pod, 'spec', 'initContainers'))}"


def _main_word(pod: Document, main: list[Document], word: str) -> str:
    for status in reversed(main):
        if waiting := text(status, "state", "waiting", "reason"):
            word = waiting
        elif at(status, "state", "terminated") is not None:
            word = _end_word(status)
    if word != "Completed":
        return word
    if failed := [status for status in main if number(status, "state", "terminated", "exitCode")]:
        return _end_word(failed[0])
    if not any(_is_up(status) for status in main):
        return _failure(pod) or word
    return "Running" if _condition(pod, "Ready").get("status") == "True" else "NotReady"


def _failure(pod: Document) -> str:
    """Return why a pod failed although its containers completed, such as DeadlineExceeded. kube-apiserver prints
    Completed."""
    return text(pod, "status", "reason") if text(pod, "status", "phase") == "Failed" else ""


def _end_word(status: Document) -> str:
    if reason := text(status, "state", "terminated", "reason"):
        return reason
    if signal := number(status, "state", "terminated", "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{number(status, 'state', 'terminated', 'exitCode')}"


def _is_up(status: Document) -> bool:
    if text(status, "state", "waiting", "reason") or at(status, "state", "terminated") is not None:
        return False
    return status.get("ready") is True and at(status, "state", "running") is not None


def _restarts(containers: _Containers, now: datetime) -> str:
    """Return the restarts. Init containers count until the main containers start; after that, only sidecars count."""
    main = containers.main
    counted = containers.init if main is None else [*containers.beside, *main]
    restarts = sum(number(status, "restartCount") for status in counted)
    ends = (instant(at(status, "lastState", "terminated", "finishedAt")) for status in counted)
    last = max((end for end in ends if end is not None), default=None)
    if not restarts or last is None:
        return str(restarts)
    return f"{restarts} ({duration((now - last).total_seconds())} ago)"


def _gates(pod: Document) -> str:
    gates = mappings(pod, "spec", "readinessGates")
    met = sum(_condition(pod, text(gate, "conditionType")).get("status") == "True" for gate in gates)
    return f"{met}/{len(gates)}" if gates else NONE


def _condition(pod: Document, type_: str) -> Document:
    for condition in mappings(pod, "status", "conditions"):
        if condition.get("type") == type_:
            return condition
    return {}


def _conditions(pod: Document) -> list[Document]:
    """Return the conditions of the row, by which kubectl can omit pods that have ended."""
    messages = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
    phase = text(pod, "status", "phase")
    if phase not in messages:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": messages[phase]}]


PODS = Printer(
    (
        NAME,
        Column("Ready", description="The number of ready containers, and of all containers."),
        Column("Status", description="The state of the pod in one word."),
        Column("Restarts", description="The number of restarts of its containers, and the time since the last one."),
        AGE,
        wide("IP", "The pod's first address."),
        wide("Node", "The node that the pod is bound to."),
        wide("Nominated Node", "The node on which other pods are being preempted for the pod."),
        wide("Readiness Gates", "The number of readiness gates that are true, and of all readiness gates."),
    ),
    _cells,
    _conditions,
)
