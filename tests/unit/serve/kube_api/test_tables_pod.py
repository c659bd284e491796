"""The status of usual pods. test_tables compares unusual pods with kube-apiserver."""

from datetime import UTC, datetime
from typing import Any

import pytest

from devlet.serve.kube_api.tables_pod import PODS

Document = dict[str, Any]

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
COLUMNS = [column.name for column in PODS.columns]

pytestmark = pytest.mark.spec("KA-5")


def pod(phase: str = "Running", **status: Any) -> Document:
    spec = {"containers": [{"name": "c"}, {"name": "d"}], "initContainers": [{"name": "i"}, {"name": "j"}]}
    return {"metadata": {"name": "p"}, "spec": spec, "status": {"phase": phase, **status}}


def container(name: str, state: Document, **more: Any) -> Document:
    return {"name": name, "state": state, **more}


def shown(document: Document, column: str) -> Any:
    return PODS.cells(document, NOW)[COLUMNS.index(column)]


RUNNING: Document = {"running": {}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed"}}
FAILED = {"terminated": {"exitCode": 1, "reason": "Error"}}
CRASHING = {"waiting": {"reason": "CrashLoopBackOff"}}


@pytest.mark.spec("KA-10.14")
def test_a_new_pod_is_pending() -> None:
    assert PODS.cells(pod("Pending"), NOW)[:4] == ["p", "0/2", "Pending", "0"]


def test_a_pod_waits_for_its_init_containers_one_by_one() -> None:
    statuses = [container("i", DONE), container("j", RUNNING)]
    assert shown(pod("Pending", initContainerStatuses=statuses), "Status") == "Init:1/2"
    statuses = [container("i", FAILED), container("j", {"waiting": {"reason": "PodInitializing"}})]
    assert shown(pod("Pending", initContainerStatuses=statuses), "Status") == "Init:Error"


def test_a_sidecar_counts_as_a_container() -> None:
    document = pod(
        initContainerStatuses=[container("i", RUNNING, started=True, ready=True), container("j", DONE)],
        containerStatuses=[container("c", RUNNING, ready=True), container("d", RUNNING, ready=False)],
    )
    document["spec"]["initContainers"][0]["restartPolicy"] = "Always"
    assert shown(document, "Ready") == "2/3"
    assert shown(document, "Status") == "Running"


def test_the_reason_of_a_waiting_container_is_the_state_of_the_pod() -> None:
    statuses = [container("c", CRASHING), container("d", RUNNING, ready=True)]
    assert shown(pod(containerStatuses=statuses), "Status") == "CrashLoopBackOff"


def test_completed_gives_way_to_a_container_that_runs_or_failed() -> None:
    running = [container("c", DONE), container("d", RUNNING, ready=True)]
    ready = [{"type": "Ready", "status": "True"}]
    assert shown(pod(containerStatuses=running, conditions=ready), "Status") == "Running"
    assert shown(pod(containerStatuses=running), "Status") == "NotReady"
    failed = [container("c", DONE), container("d", FAILED)]
    assert shown(pod(containerStatuses=failed), "Status") == "Error"


def test_a_pod_that_exceeded_its_deadline_shows_that_even_if_its_containers_completed() -> None:
    statuses = [container("c", DONE), container("d", DONE)]
    late = pod("Failed", reason="DeadlineExceeded", containerStatuses=statuses)
    assert shown(late, "Status") == "DeadlineExceeded"
    assert shown(pod("Succeeded", reason="Whatever", containerStatuses=statuses), "Status") == "Completed"
    killed = pod("Failed", reason="DeadlineExceeded", containerStatuses=[container("c", FAILED)])
    assert shown(killed, "Status") == "Error"


def test_a_container_that_ended_without_a_reason_has_its_code() -> None:
    statuses = [container("c", {"terminated": {"exitCode": 3}})]
    assert shown(pod(containerStatuses=statuses), "Status") == "ExitCode:3"
    statuses = [container("c", {"terminated": {"exitCode": 137, "signal": 9}})]
    assert shown(pod(containerStatuses=statuses), "Status") == "Signal:9"


def test_a_deleted_pod_is_terminating_until_it_has_ended() -> None:
    document = pod()
    document["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:00Z"
    assert shown(document, "Status") == "Terminating"
    assert shown({**document, "status": {"phase": "Succeeded"}}, "Status") == "Succeeded"
    assert shown({**document, "status": {"phase": "Running", "reason": "NodeLost"}}, "Status") == "Unknown"


def test_restarts_are_counted_and_the_last_one_is_dated() -> None:
    last = {"terminated": {"finishedAt": "2026-01-02T03:02:00Z"}}
    statuses = [container("c", RUNNING, restartCount=2, lastState=last), container("d", RUNNING, restartCount=1)]
    assert shown(pod(containerStatuses=statuses), "Restarts") == "3 (2m5s ago)"


@pytest.mark.spec("KA-10.16")
def test_missing_values_of_a_pod_are_shown_as_none() -> None:
    assert PODS.cells(pod(), NOW)[5:] == ["<none>"] * 4


def test_a_row_has_a_condition_for_an_ended_pod() -> None:
    assert PODS.conditions is not None
    assert [condition["reason"] for condition in PODS.conditions(pod("Failed"))] == ["Failed"]
    assert PODS.conditions(pod()) == []
