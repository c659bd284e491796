from typing import Any

import pytest

from devlet.cli.views.awaited import awaits, awaits_since, consumers, driver_states

GPU = "gpu.example.com"
TRAIN = {"resource": "pods", "name": "train", "uid": "u1"}
CONNECTED = {GPU: "Connected"}


def claim(*users: dict[str, str], **metadata: Any) -> dict[str, Any]:
    status = {"allocation": {"devices": {"results": [{"driver": GPU, "device": "g"}]}}, "reservedFor": list(users)}
    return {"metadata": metadata, "status": status}


def view(state: str, *waiting: str, drivers: dict[str, bool] | None = None, message: str = "") -> dict[str, Any]:
    parts = [{"driver": driver, "prepared": done} for driver, done in (drivers or {}).items()]
    waits = [{"pod": name, "uid": "u1", "since": "t2", "message": "not yet"} for name in waiting]
    return {"status": {"state": state, "since": "t1", "message": message, "drivers": parts, "waiting": waits}}


@pytest.mark.parametrize(
    ("claimed", "prepared", "drivers", "text"),
    [
        ({"metadata": {}}, None, None, "allocation"),
        (claim(TRAIN), None, None, ""),
        (claim(TRAIN), view("Prepared", drivers={GPU: True}), CONNECTED, ""),
        (claim(), view("Prepared", "train"), CONNECTED, "reservation for pod train"),
        (claim(), view("Waiting", "train", "web"), CONNECTED, "reservation for pods train,web"),
        (claim(TRAIN), view("Waiting", "train"), {}, "driver gpu.example.com (not registered)"),
        (claim(TRAIN), view("Waiting", "train"), {GPU: "Missing"}, "driver gpu.example.com (not registered)"),
        (claim(TRAIN), view("Waiting", "train"), {GPU: "Disconnected"}, "driver gpu.example.com (disconnected)"),
        (claim(TRAIN), view("Waiting", "train"), CONNECTED, "not yet"),
        (claim(TRAIN), view("Waiting", "train"), None, "not yet"),
        (claim(TRAIN), view("Preparing", drivers={GPU: False, "b": True}), CONNECTED, f"driver {GPU} to prepare it"),
        (claim(TRAIN), view("Failed", drivers={GPU: False}, message="no such device"), CONNECTED, "no such device"),
        (None, view("Unpreparing", drivers={GPU: True}), CONNECTED, f"driver {GPU} to unprepare it"),
        (None, view("Unpreparing", drivers={GPU: True}), {}, f"driver {GPU} (not registered)"),
        (None, view("Unpreparing"), CONNECTED, "its driver to unprepare it"),
        (claim(TRAIN, deletionTimestamp="t"), None, None, "end of pod train"),
        (claim(deletionTimestamp="t", finalizers=["a/b"]), None, None, "finalizer a/b"),
        (claim(deletionTimestamp="t"), view("Unpreparing", drivers={GPU: True}), None, f"driver {GPU} to unprepare it"),
        (claim(deletionTimestamp="t"), None, None, ""),
    ],
)
def test_what_a_claim_waits_for(
    claimed: dict[str, Any] | None, prepared: dict[str, Any] | None, drivers: dict[str, str] | None, text: str
) -> None:
    assert awaits(claimed, prepared, drivers) == text


@pytest.mark.parametrize(
    ("claimed", "prepared", "since"),
    [
        (claim(), view("Prepared", "train"), "t2"),
        (claim(), view("Failed"), "t1"),
        ({"metadata": {"creationTimestamp": "t0"}}, None, "t0"),
        (claim(creationTimestamp="t0"), None, None),
        (None, {"status": {}}, None),
    ],
)
def test_since_when(claimed: dict[str, Any] | None, prepared: dict[str, Any] | None, since: str | None) -> None:
    assert awaits_since(claimed, prepared) == since


def test_consumers_that_are_not_pods_are_shown_with_their_resource() -> None:
    assert consumers(claim(TRAIN, {"resource": "jobs", "name": "j"})) == ["train", "jobs/j"]


def test_of_several_instances_the_one_that_is_called_counts() -> None:
    drivers = [
        {"metadata": {"name": f"{GPU}~2"}, "spec": {"driver": GPU}, "status": {"state": "Standby"}},
        {"metadata": {"name": GPU}, "spec": {"driver": GPU}, "status": {"state": "Connected"}},
    ]
    assert driver_states(drivers) == {GPU: "Connected"}
