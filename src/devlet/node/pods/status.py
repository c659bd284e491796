"""A pod's status as its node writes it, and the patch from the status before. Pure.

Only the fields that belong to the node are written. The documents have the form in which an API server returns them, so
that a comparison finds what has changed.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from devlet.node.devices.inventory import UNKNOWN
from devlet.node.devices.limits import is_plain_init
from devlet.node.pods import conditions
from devlet.node.reports import Rejection
from devlet.objects.documents import Document
from devlet.objects.identifiers import ContainerName
from devlet.objects.pods.qos import qos_class
from devlet.objects.types.container import Container, ContainerStateWaiting, ContainerStatus, ResourceStatus
from devlet.objects.types.pod import Pod
from devlet.objects.values.timestamps import format_time
from devlet.runtime.containers import Exit, Run

__all__ = ["REJECTED", "Facts", "document", "patch", "phase_of", "rejected", "with_health"]

REJECTED = "Pod was rejected: "
_STARTING = ContainerStateWaiting(reason="ContainerCreating")


class Facts(Struct, frozen=True):
    """What is known of a pod.

    `previous` are the runs before those in `runs`, as far as they are known. `health` returns the devices of a
    container with their health. `prepared` is True if the pod's claims are: no container is created before. `address`
    is that of the node, if it has one. `is_over` is True if the outcome may be published; until then, a pod that has
    ended keeps its phase."""

    admitted: bool
    runs: Mapping[ContainerName, Run]
    previous: Mapping[ContainerName, Run]
    waiting: Mapping[ContainerName, ContainerStateWaiting]
    outcome: str | None
    health: Callable[[Container], Sequence[ResourceStatus]]
    prepared: bool = True
    address: str = ""
    is_over: bool = True


def phase_of(pod: Pod, facts: Facts) -> str:
    if facts.outcome is not None:
        return facts.outcome if facts.is_over else pod.status.phase
    ran = [facts.runs.get(container.name) for container in pod.spec.containers]
    if not facts.admitted or not all(run and not (run.exit and run.exit.is_lost) for run in ran):
        return "Pending"
    return "Running"


def document(pod: Pod, facts: Facts, before: Document, now: datetime) -> Document:
    """Return what the status should be. `before` is the whole pod as it was seen last."""
    status = before.get("status") or {}
    containers = _Containers(pod, facts)
    phase = phase_of(pod, facts)
    about = conditions.Facts(
        phase,
        facts.admitted and facts.prepared and facts.outcome is None,
        tuple(c.name for c in pod.spec.init_containers if not containers.is_initialized(c)),
        tuple(c.name for c in pod.spec.containers if not containers.is_running(c)),
        conditions.missing_gates(pod),
    )
    return {
        **_common(before, status, phase, now),
        **_addresses(facts.address),
        "conditions": _conditions(conditions.conditions(about), before, now),
        "initContainerStatuses": [containers.status(c) for c in pod.spec.init_containers],
        "containerStatuses": [containers.status(c) for c in pod.spec.containers],
        **(_explanation(pod) if facts.is_over else {}),
    }


def rejected(rejection: Rejection, before: Document, now: datetime) -> Document:
    """Return the status of a pod that is not admitted, without its containers."""
    facts = conditions.Facts("Failed", False, (), ())
    known = {each.get("type") for each in (before.get("status") or {}).get("conditions") or ()}
    shown = [each for each in conditions.conditions(facts) if each.type in {conditions.SCHEDULED, *known}]
    return {
        **_common(before, before.get("status") or {}, "Failed", now),
        "conditions": _conditions(shown, before, now),
        "reason": rejection.reason,
        "message": f"{REJECTED}{rejection.message}",
    }


def with_health(pod: Pod, health: Callable[[Container], Sequence[ResourceStatus]], before: Document) -> Document:
    """Return the containers of a pod that is over, with the latest health of the devices that they had."""
    containers = {container.name: container for container in pod.containers}
    found: Document = {}
    for key in ("initContainerStatuses", "containerStatuses"):
        known = (before.get("status") or {}).get(key) or []
        found[key] = [_with_health(each, containers.get(each["name"]), health) for each in known]
    return found


def _with_health(
    status: Document, container: Container | None, health: Callable[[Container], Sequence[ResourceStatus]]
) -> Document:
    held = health(container) if container else ()
    latest = {each["name"]: each for each in _plain(held) if all("health" in one for one in each.get("resources", ()))}
    before = status.get("allocatedResourcesStatus") or []
    after = [latest.get(each["name"], each) for each in before]
    return status | {"allocatedResourcesStatus": after} if before else status


def patch(wanted: Document, before: Document) -> Document | None:
    """Return the strategic merge patch from the pod `before` to this status, or None if nothing has to change."""
    status = before.get("status") or {}
    changes: Document = {key: value for key, value in wanted.items() if not _same(value, status.get(key))}
    if "conditions" in changes:
        known = {each.get("type"): each for each in status.get("conditions") or ()}
        changes["conditions"] = [
            _cleared(known.get(each["type"]) or {}) | each
            for each in wanted["conditions"]
            if not _same(each, known.get(each["type"]))
        ]
        if not changes["conditions"]:
            del changes["conditions"]
    if "hostIPs" in changes:  # a list that is merged: the previous address would stay
        changes["hostIPs"] = [{"$patch": "replace"}, *changes["hostIPs"]]
    return {"metadata": {"uid": before["metadata"]["uid"]}, "status": changes} if changes else None


def _cleared(condition: Document) -> Document:
    """Return nulls for the reason and message of a condition: merging alone would keep them."""
    return {key: None for key in ("reason", "message") if condition.get(key)}


def _addresses(address: str) -> Document:
    return {"hostIP": address, "hostIPs": [{"ip": address}]} if address else {}


def _common(before: Document, status: Document, phase: str, now: datetime) -> Document:
    return {
        "observedGeneration": before["metadata"].get("generation", 0) or None,
        "phase": phase,
        "startTime": status.get("startTime") or format_time(now),
        "qosClass": status.get("qosClass") or qos_class(before),
    }


def _explanation(pod: Pod) -> Document:
    """Clear the reason and message, except for a pod that was declared finished: its writer has explained that."""
    return {} if pod.is_finished else {"reason": None, "message": None}


def _conditions(wanted: Sequence[conditions.Condition], before: Document, now: datetime) -> list[Document]:
    known = (before.get("status") or {}).get("conditions") or []
    return conditions.documents(wanted, known, format_time(now), before["metadata"].get("generation", 0))


class _Containers:
    def __init__(self, pod: Pod, facts: Facts) -> None:
        self._pod = pod
        self._facts = facts
        found = (*pod.status.init_container_statuses, *pod.status.container_statuses)
        self._before = {each.name: each for each in found}

    def is_running(self, container: Container) -> bool:
        run = self._facts.runs.get(container.name)
        return run is not None and run.is_running and container.name not in self._facts.waiting

    def is_initialized(self, container: Container) -> bool:
        run = self._facts.runs.get(container.name)
        if is_plain_init(self._pod, container):
            return run is not None and run.exit is not None and run.exit.code == 0
        return run is not None and not (run.exit and run.exit.is_lost)

    def status(self, container: Container) -> Document:
        run = self._facts.runs.get(container.name)
        before = self._before.get(container.name, ContainerStatus())
        waiting = self._facts.waiting.get(container.name) or (_STARTING if run is None else None)
        running = self.is_running(container)
        found = {
            "name": container.name,
            "state": {"waiting": _waiting(waiting)} if waiting else _state(run),
            "lastState": self._last_state(container, before, waiting),
            "ready": running or (is_plain_init(self._pod, container) and self.is_initialized(container)),
            "restartCount": run.number if run else before.restart_count,
            "image": container.image,
            "imageID": "",
            "containerID": run.id if run else "",
            "started": running,
            "allocatedResourcesStatus": self._health(container, before),
        }
        optional = ("containerID", "allocatedResourcesStatus")
        return {key: value for key, value in found.items() if value or key not in optional}

    def _last_state(
        self, container: Container, before: ContainerStatus, waiting: ContainerStateWaiting | None
    ) -> Document:
        """Return how the previous run ended, or the newest one if the container waits to be restarted."""
        run = self._facts.runs.get(container.name)
        if run is None:
            return {}
        last = run if waiting is not None else self._facts.previous.get(container.name)
        if last is not None and last.exit is not None:
            return {"terminated": _terminated(last, last.exit)}
        known = before.last_state.terminated if run.number else None
        return {"terminated": _without_empty(msgspec.to_builtins(known))} if known else {}

    def _health(self, container: Container, before: ContainerStatus) -> list[Document]:
        """Return the health of the container's devices. A pod that is over keeps what was known last, because its
        devices may belong to another pod by now."""
        held = self._facts.health(container)
        if not held and self._facts.outcome is not None:
            held = before.allocated_resources_status
        return _plain(_completed(held, before.allocated_resources_status))


def _completed(held: Sequence[ResourceStatus], before: Sequence[ResourceStatus]) -> Sequence[ResourceStatus]:
    """Keep the previous health of a device that has none yet: a restart alone is not a reason to write a status."""
    if all(one.health for each in held for one in each.resources):
        return held
    known = {(each.name, one.resource_id): one.health for each in before for one in each.resources}
    return [
        replace(
            each,
            resources=tuple(
                one if one.health else replace(one, health=known.get((each.name, one.resource_id)) or UNKNOWN)
                for one in each.resources
            ),
        )
        for each in held
    ]


def _plain(held: Sequence[ResourceStatus]) -> list[Document]:
    """Return documents, with lists instead of tuples."""
    return [_without_empty(msgspec.json.decode(msgspec.json.encode(each))) for each in held]


def _state(run: Run | None) -> Document:
    assert run is not None
    if run.exit is None:
        return {"running": {"startedAt": format_time(run.started_at)}}
    return {"terminated": _terminated(run, run.exit)}


def _terminated(run: Run, exit: Exit) -> Document:
    found = {
        "exitCode": exit.code,
        "reason": exit.reason,
        "message": exit.message,
        "startedAt": format_time(run.started_at),
        "finishedAt": format_time(exit.finished_at),
        "containerID": run.id,
    }
    return {key: value for key, value in found.items() if value or key == "exitCode"}


def _waiting(waiting: ContainerStateWaiting) -> Document:
    found: Document = _without_empty(msgspec.to_builtins(waiting))
    return found


def _without_empty(value: Any) -> Any:
    """Omit empty fields as Go does. An exit code of 0 is kept."""
    if isinstance(value, dict):
        return {k: _without_empty(v) for k, v in value.items() if v or k == "exitCode"}
    return [_without_empty(each) for each in value] if isinstance(value, list | tuple) else value


def _same(one: Any, other: Any) -> bool:
    """Return True if both mean the same. Null, an empty list and an absent field do."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_same(one.get(key), other.get(key)) for key in one.keys() | other.keys())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other or (one in (None, []) and other in (None, []))
