from datetime import UTC, datetime, timedelta
from typing import Any

from devlet.node.capacity import Resources
from devlet.node.host import Host
from devlet.node.node_document import DAMAGED, conditions, labels, status_patch, wanted_status
from devlet.objects.documents import Document

NOW = datetime(2025, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
HOST = Host(cpus=1, memory=1, storage=1, boot_id="b1", system="linux", architecture="arm64")


def wanted(now: datetime = NOW, damage: tuple[str, ...] = (), **capacity: Any) -> Document:
    resources = Resources({"cpu": "1", **capacity}, {"cpu": "1", **capacity})
    return wanted_status(resources, HOST, "none://1", "n1", "127.0.0.1", damage, now)


def changes(before: Document, after: Document, *, beat: bool = False) -> Document:
    found: Document = (status_patch({"status": before}, after, beat=beat) or {}).get("status", {})
    return found


def test_a_node_has_the_labels_that_selectors_use() -> None:
    assert labels("n1", HOST) == {
        "kubernetes.io/hostname": "n1",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "arm64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "arm64",
    }


def test_there_is_no_patch_if_nothing_differs() -> None:
    assert status_patch({"status": wanted()}, wanted(LATER), beat=False) is None


def test_a_patch_has_only_differences() -> None:
    assert changes(wanted(), wanted(LATER, gpu="2")) == {"capacity": {"gpu": "2"}, "allocatable": {"gpu": "2"}}
    assert changes(wanted(gpu="2"), wanted()) == {"capacity": {"gpu": None}, "allocatable": {"gpu": None}}
    moved = wanted() | {"nodeInfo": wanted()["nodeInfo"] | {"bootID": "b0"}}
    assert changes(moved, wanted()) == {"nodeInfo": {"bootID": "b1"}}


def test_a_beat_renews_the_heartbeat_and_keeps_the_transition() -> None:
    renewed = changes(wanted(), wanted(LATER), beat=True)["conditions"]
    assert {each["type"]: each["status"] for each in renewed} == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    times = {(each["lastHeartbeatTime"], each["lastTransitionTime"]) for each in renewed}
    assert times == {("2025-01-01T00:01:00Z", "2025-01-01T00:00:00Z")}


def test_a_node_that_was_not_ready_becomes_ready_now() -> None:
    lost = [each | {"status": "Unknown", "lastTransitionTime": "T0"} for each in conditions((), NOW)[-1:]]
    before = wanted() | {"conditions": [*conditions((), NOW)[:-1], *lost]}
    (ready,) = changes(before, wanted(LATER))["conditions"]
    assert (ready["status"], ready["lastTransitionTime"]) == ("True", "2025-01-01T00:01:00Z")


def test_the_condition_about_damage_is_removed_with_the_damage() -> None:
    (damaged,) = changes(wanted(), wanted(damage=("file x was damaged",)))["conditions"]
    assert (damaged["type"], damaged["status"], damaged["message"]) == (DAMAGED, "True", "file x was damaged")
    assert changes(wanted(damage=("x",)), wanted())["conditions"] == [{"type": DAMAGED, "$patch": "delete"}]


def test_the_message_about_much_damage_fits_into_a_condition() -> None:
    assert len(conditions(["x" * 100_000], NOW)[-1]["message"]) == 32 * 1024


def test_a_changed_address_is_written_and_foreign_ones_stay() -> None:
    before = wanted() | {"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}, {"type": "ExternalIP"}]}
    assert changes(before, wanted())["addresses"] == wanted()["addresses"]
