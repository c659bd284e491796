from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from devlet.node.pods import status
from devlet.node.pods.status import Facts, document, patch, phase_of, rejected
from devlet.node.reports import Rejection
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import ContainerName
from devlet.objects.types.container import Container, ContainerStateWaiting, ResourceHealth, ResourceStatus
from devlet.objects.types.pod import Pod
from devlet.runtime.containers import Exit, Run, lost

NOW = datetime(2025, 1, 1, tzinfo=UTC)
AT = "2025-01-01T00:00:00Z"
MAIN, INIT, HELPER = ContainerName("main"), ContainerName("init"), ContainerName("helper")
RUNNING = Run("none://u/main", 0, NOW)
DONE = Run("none://u/init", 0, NOW, Exit(0, NOW, "Completed"))


def pod_document(*, init: bool = False, **status: Any) -> Document:
    spec: Document = {"restartPolicy": "Always", "containers": [{"name": "main", "image": "i:1"}]}
    if init:
        spec["initContainers"] = [
            {"name": "init", "image": "i:1"},
            {"name": "helper", "image": "i:1", "restartPolicy": "Always"},
        ]
    present = {key: value for key, value in status.items() if value is not None}
    return {"metadata": {"name": "p", "uid": "u", "generation": 3}, "spec": spec, "status": present}


def facts(runs: Mapping[ContainerName, Run], **more: Any) -> Facts:
    values: dict[str, Any] = {
        "admitted": True,
        "previous": {},
        "waiting": {},
        "outcome": None,
        "health": lambda container: (),
        **more,
    }
    return Facts(runs=runs, **values)


def made(before: Document, known: Facts) -> Document:
    return document(view(Pod, before), known, before, NOW)


def main(found: Document) -> Document:
    one: Document = found["containerStatuses"][0]
    return one


def test_a_running_pod_is_described_as_the_kubelet_does() -> None:
    found = made(pod_document(qosClass="Burstable"), facts({MAIN: RUNNING}))
    assert (found["phase"], found["qosClass"], found["startTime"]) == ("Running", "Burstable", AT)
    assert found["observedGeneration"] == 3
    assert main(found) == {
        "name": "main",
        "state": {"running": {"startedAt": AT}},
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": "i:1",
        "imageID": "",
        "containerID": "none://u/main",
        "started": True,
    }


def test_the_quality_of_service_and_the_start_time_are_set_once() -> None:
    found = made(pod_document(startTime="2024-01-01T00:00:00Z"), facts({MAIN: RUNNING}))
    assert (found["startTime"], found["qosClass"]) == ("2024-01-01T00:00:00Z", "BestEffort")


def test_the_phase_follows_admission_the_first_start_and_the_outcome() -> None:
    one = view(Pod, pod_document())
    assert phase_of(one, facts({}, admitted=False)) == "Pending"
    assert phase_of(one, facts({})) == "Pending"
    assert phase_of(one, facts({MAIN: RUNNING})) == "Running"
    assert phase_of(one, facts({MAIN: DONE})) == "Running"
    assert phase_of(one, facts({MAIN: Run("x", 0, NOW, lost(NOW))})) == "Pending"
    assert phase_of(one, facts({MAIN: DONE}, outcome="Succeeded")) == "Succeeded"


def test_init_containers_and_sidecars_have_statuses_of_their_own() -> None:
    runs = {INIT: DONE, HELPER: Run("none://u/helper", 0, NOW), MAIN: RUNNING}
    found = made(pod_document(init=True), facts(runs))
    init, helper = found["initContainerStatuses"]
    assert init["state"]["terminated"]["exitCode"] == 0 and init["ready"] and not init["started"]
    assert helper["ready"] and helper["started"]
    conditions = {each["type"]: each["status"] for each in found["conditions"]}
    assert set(conditions.values()) == {"True"}


def test_a_container_that_waits_shows_why_and_how_it_ended_last() -> None:
    why = ContainerStateWaiting(reason="CrashLoopBackOff", message="back-off 10s")
    ended = Run("none://u/main", 4, NOW, Exit(7, NOW, "Error"))
    found = main(made(pod_document(), facts({MAIN: ended}, waiting={MAIN: why})))
    assert found["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    assert found["lastState"]["terminated"]["exitCode"] == 7
    assert (found["ready"], found["started"], found["restartCount"]) == (False, False, 4)


def test_a_restarted_container_shows_how_its_previous_run_ended() -> None:
    before = Run("none://u/main", 0, NOW, Exit(7, NOW, "Error"))
    again = Run("none://u/main", 1, NOW)
    first = made(pod_document(), facts({MAIN: again}, previous={MAIN: before}))
    assert main(first)["lastState"]["terminated"]["exitCode"] == 7
    later = made(pod_document(**first), facts({MAIN: again}))
    assert main(later)["lastState"] == main(first)["lastState"]


@pytest.mark.spec("DP-8.22")
def test_every_container_has_its_devices_and_their_health() -> None:
    def health(container: Container) -> tuple[ResourceStatus, ...]:
        devices = (ResourceHealth(resource_id=f"dev-{container.name}", health="Unhealthy"),)
        return (ResourceStatus(name="vendor.com/gpu", resources=devices),)

    runs = {INIT: DONE, HELPER: RUNNING, MAIN: RUNNING}
    found = made(pod_document(init=True), facts(runs, health=health))
    for each in (*found["initContainerStatuses"], *found["containerStatuses"]):
        devices = [{"resourceID": f"dev-{each['name']}", "health": "Unhealthy"}]
        assert each["allocatedResourcesStatus"] == [{"name": "vendor.com/gpu", "resources": devices}]


@pytest.mark.spec("DP-8.22")
def test_a_pod_that_is_over_keeps_the_last_health_of_its_devices() -> None:
    known = [{"name": "vendor.com/gpu", "resources": [{"resourceID": "d", "health": "Unhealthy"}]}]
    before = pod_document(containerStatuses=[{"name": "main", "allocatedResourcesStatus": known}])
    assert main(made(before, facts({MAIN: DONE}, outcome="Failed")))["allocatedResourcesStatus"] == known
    assert "allocatedResourcesStatus" not in main(made(before, facts({MAIN: RUNNING})))


def test_a_rejected_pod_has_failed_with_a_reason() -> None:
    found = rejected(Rejection("OutOfcpu", "too little"), pod_document(), NOW)
    assert (found["phase"], found["reason"]) == ("Failed", "OutOfcpu")
    assert found["message"] == "Pod was rejected: too little"
    assert "containerStatuses" not in found
    assert [each["type"] for each in found["conditions"]] == ["PodScheduled"]


def test_a_pod_that_ran_before_is_not_ready_when_it_is_rejected() -> None:
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "T0"}]
    found = rejected(Rejection("OutOfcpu", "too little"), pod_document(conditions=ready), NOW)
    conditions = {each["type"]: each for each in found["conditions"]}
    assert (conditions["Ready"]["status"], conditions["Ready"]["lastTransitionTime"]) == ("False", AT)


def test_an_unchanged_status_needs_no_patch() -> None:
    before = pod_document()
    wanted = made(before, facts({MAIN: RUNNING}))
    first = patch(wanted, before)
    assert first is not None and first["metadata"] == {"uid": "u"}
    assert set(first["status"]) == set(wanted) - {"reason", "message", "initContainerStatuses"}
    after = pod_document(**wanted)
    assert patch(made(after, facts({MAIN: RUNNING})), after) is None


def test_a_patch_has_only_what_differs() -> None:
    before = pod_document()
    after = pod_document(**made(before, facts({MAIN: RUNNING})))
    ended = made(after, facts({MAIN: RUNNING}, waiting={MAIN: ContainerStateWaiting(reason="x")}))
    found = patch(ended, after)
    assert found is not None and set(found["status"]) == {"containerStatuses", "conditions"}
    assert {each["type"] for each in found["status"]["conditions"]} == {"Ready", "ContainersReady"}


def test_reason_and_message_are_cleared_unless_the_pod_was_declared_finished() -> None:
    before = pod_document(reason="Old", message="old")
    found = patch(made(before, facts({MAIN: RUNNING})), before)
    assert found is not None and found["status"]["reason"] is None and found["status"]["message"] is None
    evicted = pod_document(phase="Failed", reason="Evicted", message="low on memory")
    assert "reason" not in made(evicted, facts({MAIN: DONE}, outcome="Failed"))


def test_the_prefix_of_a_rejection_is_that_of_the_kubelet() -> None:
    assert status.REJECTED == "Pod was rejected: "


@pytest.mark.spec("DN-11.23")
def test_health_that_is_learned_after_the_end_replaces_the_previous_one() -> None:
    entries = [
        {"name": "claim:gpu", "resources": [{"resourceID": "d", "health": "Healthy"}]},
        {"name": "vendor.com/gpu", "resources": [{"resourceID": "x", "health": "Healthy"}]},
    ]
    before = pod_document()
    before["status"] = {"containerStatuses": [{"name": "main", "allocatedResourcesStatus": entries}]}
    news = ResourceStatus(name="claim:gpu", resources=(ResourceHealth(resource_id="d", health="Unhealthy"),))
    found = status.with_health(view(Pod, before), lambda container: (news,), before)
    (container,) = found["containerStatuses"]
    health = [each["resources"][0]["health"] for each in container["allocatedResourcesStatus"]]
    assert health == ["Unhealthy", "Healthy"] and found["initContainerStatuses"] == []


def test_the_reason_of_a_condition_is_cleared_when_it_no_longer_holds() -> None:
    old = {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "wait"}
    before = pod_document(conditions=[old])
    changed = patch(made(before, facts({MAIN: RUNNING})), before)
    assert changed is not None
    ready = next(each for each in changed["status"]["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["reason"], ready["message"]) == ("True", None, None)


def test_the_address_of_the_node_replaces_the_previous_one() -> None:
    before = pod_document(hostIP="10.0.0.1", hostIPs=[{"ip": "10.0.0.1"}])
    known = msgspec.structs.replace(facts({MAIN: RUNNING}), address="10.0.0.2")
    changed = patch(made(before, known), before)
    assert changed is not None and changed["status"]["hostIP"] == "10.0.0.2"
    assert changed["status"]["hostIPs"] == [{"$patch": "replace"}, {"ip": "10.0.0.2"}]
    same = msgspec.structs.replace(known, address="10.0.0.1")
    unchanged = patch(made(before, same), before)
    assert unchanged is not None and "hostIPs" not in unchanged["status"]


def test_no_container_can_start_before_the_claims_are_prepared() -> None:
    known = msgspec.structs.replace(facts({}), prepared=False)
    found = {each["type"]: each["status"] for each in made(pod_document(), known)["conditions"]}
    assert found["PodReadyToStartContainers"] == "False"


def test_unknown_health_keeps_the_previous_health_of_the_status() -> None:
    def health(container: Container) -> tuple[ResourceStatus, ...]:
        open_ = tuple(ResourceHealth(resource_id=each) for each in ("d1", "d2"))
        return (ResourceStatus(name="vendor.com/gpu", resources=open_),)

    told = {"name": "vendor.com/gpu", "resources": [{"resourceID": "d1", "health": "Unhealthy"}]}
    before = pod_document(containerStatuses=[{"name": "main", "allocatedResourcesStatus": [told]}])
    (found,) = main(made(before, facts({MAIN: RUNNING}, health=health)))["allocatedResourcesStatus"]
    assert [each["health"] for each in found["resources"]] == ["Unhealthy", "Unknown"]
    (kept,) = main(status.with_health(view(Pod, before), health, before))["allocatedResourcesStatus"]
    assert kept == told
