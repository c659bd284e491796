from typing import Any

from tests.support.manifests.seen import Claim, Container, Event, Pod, Result, Rule, container, seen


def pod(name: str, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"nodeName": "n1"}, "status": status}


def claim(name: str, namespace: str = "default", **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"}, "status": status}


def test_claims_are_called_after_the_pods_they_were_made_for() -> None:
    entries = [{"name": "gpu", "resourceClaimName": "train-gpu-x7"}, {"name": "none"}]
    extended = {"resourceClaimName": "train-extended-resources-q2"}
    found = seen(
        [pod("train", phase="Running", resourceClaimStatuses=entries, extendedResourceClaimStatus=extended)],
        [claim("train-gpu-x7"), claim("train-extended-resources-q2"), claim("own"), claim("train-gpu-x7", "other")],
        [],
        [],
        [],
    )
    assert set(found.claims) == {"train/gpu", "train/extended-resources", "own", "train-gpu-x7"}
    assert found.claims["train/gpu"] == Claim("uid-train-gpu-x7")
    assert found.pods == {"train": Pod("Running", "n1")}


def test_a_device_of_a_claim_is_listed_with_all_its_details() -> None:
    result = {
        "request": "gpu",
        "driver": "d",
        "pool": "p",
        "device": "x",
        "shareID": "s",
        "adminAccess": True,
        "consumedCapacity": {"memory": "1Gi", "compute": "2"},
        "bindingConditions": ["Ready"],
    }
    allocation = {"devices": {"results": [result]}}
    reserved = [{"resource": "pods", "name": "b"}, {"resource": "pods", "name": "a"}]
    found = seen([], [claim("own", allocation=allocation, reservedFor=reserved)], [], [], [])
    consumed = (("compute", "2"), ("memory", "1Gi"))
    expected = Result("gpu", "d/p/x", "s", consumed, admin=True, awaits=("Ready",))
    assert found.claims["own"] == Claim("uid-own", (expected,), ("a", "b"))


def test_containers_that_have_ended_are_named() -> None:
    ended = {"name": "first", "state": {"terminated": {"exitCode": 0}}}
    runs = {"name": "main", "state": {"running": {}}, "ready": True}
    found = seen(
        [pod("train", phase="Running", initContainerStatuses=[ended], containerStatuses=[runs])], [], [], [], []
    )
    assert found.pods["train"].ended == ("first",)


def test_containers_that_are_ready_or_not_against_their_state_are_named() -> None:
    def status(name: str, state: str, ready: bool, code: int = 0) -> dict[str, Any]:
        return {"name": name, "state": {state: {"exitCode": code} if state == "terminated" else {}}, "ready": ready}

    first = [status("done", "terminated", True), status("failed", "terminated", True, 1)]
    main = [status("good", "running", True), status("slow", "running", False), status("over", "terminated", False)]
    stale, waits = status("stale", "terminated", True), status("waits", "waiting", False)
    train = pod("train", phase="Running", initContainerStatuses=first, containerStatuses=[*main, stale, waits])
    assert seen([train], [], [], [], []).pods["train"].amiss == ("failed", "slow", "stale")


def test_holders_events_and_rules_are_told_in_short() -> None:
    holder = {
        "metadata": {"name": "train"},
        "status": {"containers": [{"name": "main", "oci": {"process": {"env": ["B=2", "A=1"]}}}]},
    }
    event = {"involvedObject": {"name": "train"}, "reason": "Why", "message": "because"}
    condition = {"type": "EvictionInProgress", "status": "False", "reason": "Completed", "message": "done"}
    rules: list[dict[str, Any]] = [
        {"metadata": {"name": "told"}, "status": {"conditions": [condition]}},
        {"metadata": {"name": "silent"}},
    ]
    found = seen([], [], [holder], [event], rules)
    assert found.containers == {"train/main": Container(("A=1", "B=2"))}
    assert found.events == [Event("train", "Why", "because")]
    assert found.rules == {"told": Rule("False", "Completed", "done"), "silent": Rule("", "", "")}


def test_everything_in_the_spec_of_a_container_is_told() -> None:
    device = {"type": "c", "major": 1, "minor": 3}
    oci = {
        "process": {"env": ["A=1"], "user": {"additionalGids": [5]}},
        "mounts": [{"destination": "/in", "source": "/out", "options": ["ro"]}],
        "linux": {
            "devices": [{"path": "/dev/null", **device}, {"path": "/dev/x", "type": "c", "major": 9, "minor": 9}],
            "resources": {"devices": [{"allow": True, **device, "access": "rw"}]},
            "netDevices": {},
        },
    }
    assert container(oci) == Container(
        ("A=1",),
        (("/in", "/out", ("ro",)),),
        (("/dev/null", "rw"), ("/dev/x", "")),
        ("process.user.additionalGids=[5]",),
    )
