from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from devlet.node.pods.container_plan import (
    History,
    Plan,
    Settings,
    deadline,
    failed,
    outcome,
    own,
    plan,
    started,
    stopped,
)
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import ContainerName
from devlet.objects.types.container import ContainerStateWaiting
from devlet.objects.types.pod import Pod
from devlet.runtime.containers import Exit, Run, lost, reason_for

NOW = datetime(2025, 1, 1, tzinfo=UTC)
A, B = ContainerName("a"), ContainerName("b")
INIT, HELPER = ContainerName("init"), ContainerName("helper")


def pod(*init: str, policy: str = "Always", containers: tuple[str, ...] = ("a",)) -> Pod:
    """Init containers that are named helper are sidecars."""
    kinds = {"helper": {"restartPolicy": "Always"}}
    spec: dict[str, Any] = {
        "restartPolicy": policy,
        "containers": [{"name": name} for name in containers],
        "initContainers": [{"name": name, **kinds.get(name, {})} for name in init],
    }
    return view(Pod, {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": spec})


def running(number: int = 0, ends: float | None = None) -> Run:
    return Run("x", number, NOW, ends_at=None if ends is None else NOW + timedelta(seconds=ends))


def ended(code: int = 0, *, ago: float = 0, lasted: float = 1, number: int = 0) -> Run:
    at = NOW - timedelta(seconds=ago)
    return Run("x", number, at - timedelta(seconds=lasted), Exit(code, at, reason_for(code)))


def gone(number: int = 0) -> Run:
    return Run("x", number, NOW, lost(NOW))


def starts(found: Plan) -> list[tuple[str, int]]:
    return [(each.container.name, each.number) for each in found.start]


def reasons(found: Plan) -> dict[str, str]:
    return {name: why.reason for name, why in found.waiting.items()}


def test_containers_start_at_once_without_init_containers() -> None:
    found = plan(pod(containers=("a", "b")), {}, {}, NOW)
    assert starts(found) == [("a", 0), ("b", 0)] and found.initialized
    assert reasons(found) == {"a": "ContainerCreating", "b": "ContainerCreating"}


def test_init_containers_start_one_after_the_other() -> None:
    two = pod("init", "second")
    assert starts(plan(two, {}, {}, NOW)) == [("init", 0)]
    assert starts(plan(two, {INIT: running()}, {}, NOW)) == []
    found = plan(two, {INIT: ended()}, {}, NOW)
    assert starts(found) == [("second", 0)] and not found.initialized
    assert reasons(found) == {"second": "PodInitializing", "a": "PodInitializing"}


def test_a_sidecar_is_started_in_its_turn_and_not_waited_for() -> None:
    mixed = pod("helper", "init")
    assert starts(plan(mixed, {}, {}, NOW)) == [("helper", 0)]
    assert starts(plan(mixed, {HELPER: running()}, {}, NOW)) == [("init", 0)]
    assert starts(plan(mixed, {HELPER: running(), INIT: ended()}, {}, NOW)) == [("a", 0)]


def test_a_sidecar_is_restarted_whatever_the_policy_of_its_pod_is() -> None:
    assert starts(plan(pod("helper", policy="Never"), {HELPER: ended(), A: running()}, {}, NOW)) == [("helper", 1)]


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [("Always", 0, True), ("Always", 1, True), ("OnFailure", 0, False), ("OnFailure", 1, True), ("Never", 1, False)],
)
def test_the_restart_policy_decides_which_containers_are_restarted(policy: str, code: int, again: bool) -> None:
    found = plan(pod(policy=policy), {A: ended(code)}, {}, NOW)
    assert starts(found) == ([("a", 1)] if again else [])
    assert (found.outcome is None) == again


def test_a_container_may_have_a_restart_policy_and_rules_of_its_own() -> None:
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
    containers = [{"name": "a", "restartPolicy": "Never", "restartPolicyRules": rules}, {"name": "b"}]
    two = view(Pod, {"spec": {"restartPolicy": "Never", "containers": containers}})
    assert starts(plan(two, {A: ended(42), B: ended()}, {}, NOW)) == [("a", 1)]
    assert plan(two, {A: ended(1), B: ended()}, {}, NOW).outcome == "Failed"


def test_only_init_containers_are_sidecars() -> None:
    always = view(Pod, {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "restartPolicy": "Always"}]}})
    assert [each.name for each in own(always)] == ["a"]
    assert [each.name for each in own(pod("init", "helper"))] == ["init", "a"]


def test_the_outcome_is_failed_if_one_container_failed() -> None:
    two = pod(policy="Never", containers=("a", "b"))
    assert plan(two, {A: ended(), B: running()}, {}, NOW).outcome is None
    assert plan(two, {A: ended(), B: ended()}, {}, NOW).outcome == "Succeeded"
    assert plan(two, {A: ended(), B: ended(2)}, {}, NOW).outcome == "Failed"


def test_a_pod_is_over_even_if_its_sidecars_run() -> None:
    found = plan(pod("helper", policy="Never"), {HELPER: running(), A: ended()}, {}, NOW)
    assert found.outcome == "Succeeded"


def test_an_init_container_that_fails_for_good_fails_the_pod() -> None:
    found = plan(pod("init", policy="Never"), {INIT: ended(1)}, {}, NOW)
    assert found.outcome == "Failed" and reasons(found) == {"a": "PodInitializing"}
    assert starts(plan(pod("init"), {INIT: ended(1)}, {}, NOW)) == [("init", 1)]


@pytest.mark.parametrize(("restarts", "wait"), [(0, 0), (1, 10), (2, 20), (3, 40), (5, 160), (6, 300), (40, 300)])
def test_each_restart_waits_longer_than_the_one_before(restarts: int, wait: float) -> None:
    history = {A: History(restarts=restarts)}
    just_before = plan(pod(), {A: ended(1, ago=wait - 0.5)}, history, NOW)
    assert starts(plan(pod(), {A: ended(1, ago=wait)}, history, NOW)) == [("a", 1)]
    if wait:
        assert starts(just_before) == [] and reasons(just_before) == {"a": "CrashLoopBackOff"}
        assert just_before.wake == NOW + timedelta(seconds=0.5)


def test_the_message_about_a_back_off_is_the_kubelets() -> None:
    found = plan(pod(), {A: ended(1)}, {A: History(restarts=4)}, NOW)
    assert found.waiting[A].message == "back-off 1m20s restarting failed container=a pod=p_ns(u)"


def test_a_container_that_ran_for_long_is_restarted_at_once() -> None:
    history, long = History(restarts=6), ended(1, lasted=600)
    assert starts(plan(pod(), {A: long}, {A: history}, NOW)) == [("a", 1)]
    assert started(long, history) == History(restarts=1)
    assert started(ended(1), history) == History(restarts=7)
    assert started(None, History()) == History()


def test_starting_a_container_is_retried_with_a_growing_delay() -> None:
    problem = ContainerStateWaiting(reason="CreateContainerConfigError", message="no")
    history = failed(History(), problem, NOW)
    found = plan(pod(), {}, {A: history}, NOW)
    assert starts(found) == [] and found.waiting == {A: problem}
    assert found.wake == NOW + timedelta(seconds=10)
    assert starts(plan(pod(), {}, {A: history}, NOW + timedelta(seconds=10))) == [("a", 0)]
    twice = failed(history, problem, NOW)
    assert plan(pod(), {}, {A: twice}, NOW).wake == NOW + timedelta(seconds=20)


def test_the_next_look_is_when_the_first_container_ends() -> None:
    two = pod(containers=("a", "b"))
    assert plan(two, {A: running(ends=9), B: running(ends=5)}, {}, NOW).wake == NOW + timedelta(seconds=5)
    assert plan(two, {A: running(), B: running()}, {}, NOW).wake is None


def test_after_a_reboot_a_pod_starts_with_its_init_containers() -> None:
    lost_all = {INIT: gone(), HELPER: gone(2), A: gone(1)}
    found = plan(pod("init", "helper"), lost_all, {}, NOW)
    assert starts(found) == [("init", 1)] and reasons(found)["a"] == "PodInitializing"
    assert starts(plan(pod("init", "helper"), {**lost_all, INIT: ended(number=1)}, {}, NOW)) == [("helper", 3)]
    assert plan(pod("init", policy="Never"), lost_all, {}, NOW).outcome == "Failed"


def test_a_pod_that_was_stopped_before_it_started_counts_as_lost() -> None:
    runs = stopped(pod("init"), {INIT: ended()}, NOW)
    assert runs[INIT] == ended() and runs[A].exit == lost(NOW)
    assert outcome(pod("init").containers, runs) == "Failed"


def test_the_delays_can_be_set() -> None:
    quick = Settings(first_restart=1, longest_restart=2)
    found = plan(pod(), {A: ended(1)}, {A: History(restarts=9)}, NOW, quick)
    assert found.wake == NOW + timedelta(seconds=2)


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({"activeDeadlineSeconds": 90}, {"startTime": "2025-01-01T00:00:00Z"}, "2025-01-01T00:01:30+00:00"),
        ({"activeDeadlineSeconds": 90}, {}, None),
        ({}, {"startTime": "2025-01-01T00:00:00Z"}, None),
    ],
)
def test_a_deadline_counts_from_the_start_of_the_pod(spec: Document, status: Document, expected: str | None) -> None:
    found = deadline(view(Pod, {"spec": spec, "status": status}))
    assert (found.isoformat() if found else None) == expected
