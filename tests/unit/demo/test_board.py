from collections.abc import Callable
from typing import Any

import anyio
import pytest

from devlet.cluster.informer import Changed
from devlet.demo import manifests
from devlet.demo.board import Board
from devlet.objects.documents import Document


def see(board: Board, *documents: Document) -> None:
    for document in documents:
        metadata = document["metadata"]
        board.see(document["kind"], Changed((metadata.get("namespace", ""), metadata["name"]), None, document))


def rows(board: Board, title: str) -> list[tuple[str, ...]]:
    return next(table.rows for table in board.tables() if table.title == title)


def gpu_slice(*names: str) -> Document:
    devices = [
        {"name": name, "attributes": {"model": {"string": "M"}}, "capacity": {"memory": {"value": "8Gi"}}}
        for name in names
    ]
    spec = {"driver": manifests.GPU_DRIVER, "nodeName": manifests.NODE, "devices": devices}
    return {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}


def fpga(name: str) -> Document:
    return {"spec": {"resource": manifests.FPGA, "id": name}, "status": {"health": "Healthy"}}


def holder(pod: str, **container: Any) -> Document:
    return {"metadata": {"name": pod}, "status": {"containers": [container]}}


def pod(name: str, phase: str = "Pending", **source: str) -> Document:
    return {**manifests.pod(name, fpgas=0, **source), "status": {"phase": phase}}


def node(**allocatable: str) -> Document:
    return {"kind": "Node", "metadata": {"name": manifests.NODE}, "status": {"allocatable": allocatable}}


def event(name: str, pod: str, reason: str, message: str) -> Document:
    about = {"kind": "Pod", "name": pod}
    return {
        "kind": "Event",
        "metadata": {"name": name, "namespace": "demo"},
        "involvedObject": about,
        "reason": reason,
        "message": message,
    }


def test_devices_of_plugins_and_of_slices_are_listed_with_their_holders() -> None:
    board = Board()
    see(board, node(), gpu_slice("gpu-0", "gpu-1"))
    claimed = {"claims": [{"driver": manifests.GPU_DRIVER, "device": "gpu-1"}]}
    board.hold(
        [fpga("fpga-0")],
        [
            holder("b", **claimed),
            holder("a", **claimed),
            holder("c", devices=[{"resource": manifests.FPGA, "ids": ["fpga-0"]}]),
        ],
    )
    assert rows(board, "Devices") == [
        ("laptop", "example.com/fpga", "fpga-0", "device plugin, Healthy", "c"),
        ("laptop", "gpu.example.com", "gpu-0", "M, 8Gi", "–"),
        ("laptop", "gpu.example.com", "gpu-1", "M, 8Gi", "a, b"),
    ]


def test_a_claim_that_is_not_prepared_yet_holds_no_device() -> None:
    board = Board()
    board.hold([], [holder("a", claims=[{"name": "gpu", "claim": "c", "driver": manifests.GPU_DRIVER}])])
    assert board.held_by("a") == []


def test_a_deleted_object_leaves_the_board() -> None:
    board = Board()
    see(board, manifests.claim("c"))
    assert rows(board, "Resource claims") == [("c", "pending", "–", "–")]
    board.see("ResourceClaim", Changed(("demo", "c"), manifests.claim("c"), None))
    assert rows(board, "Resource claims") == []


@pytest.mark.parametrize(
    ("status", "row"),
    [
        ({}, ("c", "pending", "–", "–")),
        ({"allocation": {"devices": {"results": [{"device": "gpu-0"}]}}}, ("c", "allocated", "gpu-0", "–")),
        (
            {"allocation": {"devices": {}}, "reservedFor": [{"name": "p"}, {"name": "q"}]},
            ("c", "allocated,reserved", "–", "p, q"),
        ),
    ],
)
def test_the_state_of_a_claim_is_shown_as_kubectl_prints_it(status: Document, row: tuple[str, ...]) -> None:
    board = Board()
    see(board, {**manifests.claim("c"), "status": status})
    assert rows(board, "Resource claims") == [row]


def test_pods_are_shown_with_what_they_ask_for_and_what_their_containers_get() -> None:
    board = Board()
    see(board, pod("a", resourceClaimName="c"), pod("b", resourceClaimTemplateName="t"))
    see(board, {**manifests.pod("c", fpgas=2), "status": {"phase": "Running"}})
    board.hold([], [holder("c", oci={"process": {"env": ["FPGA=fpga-0,fpga-1"]}})])
    assert [(row[0], row[1], row[3], row[4]) for row in rows(board, "Pods")] == [
        ("a", "Pending", "c", "–"),
        ("b", "Pending", "template t", "–"),
        ("c", "Running", "2 example.com/fpga", "FPGA=fpga-0,fpga-1"),
    ]


def test_the_last_events_are_shown_and_a_repeated_event_comes_last() -> None:
    board = Board()
    see(board, *(event(f"e{i}", "p", f"R{i}", "m") for i in range(9)), event("e5", "p", "R5", "again"))
    assert [row[0] for row in rows(board, "Last events")] == ["R3", "R4", "R6", "R7", "R8", "R5"]
    assert rows(board, "Last events")[-1] == ("R5", "pod/p", "again")


def test_the_reason_why_a_pod_is_pending_comes_from_its_last_scheduling_event() -> None:
    board = Board()
    see(board, event("e1", "p", "FailedScheduling", "old"), event("e2", "p", "FailedScheduling", "new"))
    see(board, event("e3", "p", "Scheduled", "on"), event("e4", "q", "FailedScheduling", "other"))
    assert (board.why_pending("p"), board.why_pending("unknown")) == ("new", "")


def test_the_board_knows_what_the_node_offers() -> None:
    board = Board()
    see(board, node(**{manifests.FPGA: "2"}), gpu_slice("gpu-0"), pod("a", "Running"))
    assert board.is_offered(manifests.FPGA, 2) and not board.is_offered(manifests.FPGA, 3)
    assert board.is_published("gpu-0") and not board.is_published("gpu-0", "gpu-1")
    assert (board.phase("a"), board.phase("b")) == ("Running", "")


@pytest.mark.parametrize(
    "change", [lambda b: b.note("hello"), lambda b: b.suggest(()), lambda b: see(b, node()), lambda b: b.hold([], [])]
)
def test_every_change_is_announced(change: Callable[[Board], None]) -> None:
    board = Board()
    change(board)
    assert board.changes.version == 1


def test_only_a_watched_object_counts_as_a_change_of_objects() -> None:
    board = Board()
    board.hold([], [])
    assert board.object_changes.version == 0
    see(board, node())
    assert board.object_changes.version == 1


@pytest.mark.anyio
async def test_a_task_can_wait_until_the_board_shows_something() -> None:
    board = Board()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(board.until, lambda: board.phase("a") == "Running")
        await anyio.lowlevel.checkpoint()
        see(board, pod("b", "Running"))
        await anyio.lowlevel.checkpoint()
        see(board, pod("a", "Running"))
