from devlet.node.pods.conditions import Facts, conditions, documents


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


def test_conditions_name_the_containers_that_are_not_there_yet() -> None:
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
