from devlet.node.pods.conditions import Facts, conditions, documents, missing_gates
from devlet.objects.documents import view
from devlet.objects.types.pod import Pod


def by_type(facts: Facts) -> dict[str, tuple[bool, str]]:
    return {each.type: (each.status, each.reason) for each in conditions(facts)}


def test_a_pod_whose_containers_all_run_is_ready() -> None:
    assert by_type(Facts("Running", True, (), ())) == {
        "PodReadyToStartContainers": (True, ""),
        "Initialized": (True, ""),
        "ContainersReady": (True, ""),
        "Ready": (True, ""),
        "PodScheduled": (True, ""),
    }


def test_conditions_name_the_containers_that_are_not_ready_yet() -> None:
    found = {each.type: each.message for each in conditions(Facts("Pending", True, ("i",), ("a", "b")))}
    assert found["Initialized"] == "containers with incomplete status: [i]"
    assert found["Ready"] == found["ContainersReady"] == "containers with unready status: [a b]"


def test_a_pod_that_is_over_is_not_ready() -> None:
    assert by_type(Facts("Succeeded", False, ("i",), ("a",)))["Ready"] == (False, "PodCompleted")
    assert by_type(Facts("Succeeded", False, ("i",), ("a",)))["Initialized"] == (True, "PodCompleted")
    assert by_type(Facts("Failed", False, (), ("a",)))["ContainersReady"] == (False, "PodFailed")


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    running = conditions(Facts("Running", True, (), ()))
    first = documents(running, [], "T1", 1)
    assert {each["lastTransitionTime"] for each in first} == {"T1"}
    again = {each["type"]: each for each in documents(conditions(Facts("Running", True, (), ("a",))), first, "T2", 2)}
    assert again["Ready"]["lastTransitionTime"] == "T2" and again["PodScheduled"]["lastTransitionTime"] == "T1"
    assert again["PodScheduled"]["observedGeneration"] == 2


def test_a_pod_with_a_closed_gate_is_not_ready_though_its_containers_are() -> None:
    found = {each.type: each for each in conditions(Facts("Running", True, (), (), ("one", "two")))}
    assert found["ContainersReady"].status
    assert (found["Ready"].status, found["Ready"].reason) == (False, "ReadinessGatesNotReady")
    assert found["Ready"].message == "one, two"
    unready = {each.type: each for each in conditions(Facts("Running", True, (), ("a",), ("one",)))}
    assert unready["Ready"].reason == "ContainersNotReady"


def test_a_gate_is_open_when_its_condition_is_true() -> None:
    gates = [{"conditionType": f"example.com/{name}"} for name in ("open", "closed", "missing")]
    status = [{"type": "example.com/open", "status": "True"}, {"type": "example.com/closed", "status": "Unknown"}]
    pod = view(Pod, {"spec": {"readinessGates": gates}, "status": {"conditions": status}})
    assert missing_gates(pod) == (
        'the status of pod readiness gate "example.com/closed" is not "True", but Unknown',
        'corresponding condition of pod readiness gate "example.com/missing" does not exist.',
    )
