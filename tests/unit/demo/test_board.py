from collections.abc import Callable
from typing import Any

import anyio
import pytest

from devlet.cluster.informer import Changed
from devlet.demo import cast
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
    spec = {"driver": cast.GPU_DRIVER, "nodeName": cast.NODE, "devices": devices}
    return {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}


def fpga(name: str) -> Document:
    return {"spec": {"resource": cast.FPGA, "id": name}, "status": {"health": "Healthy"}}


def holder(pod: str, **container: Any) -> Document:
    return {"metadata": {"name": pod}, "status": {"containers": [container]}}


def pod(name: str, phase: str = "Pending", **source: str) -> Document:
    return {**cast.pod(name, fpgas=0, **source), "status": {"phase": phase}}


def node(**allocatable: str) -> Document:
    return {"kind": "Node", "metadata": {"name": cast.NODE}, "status": {"allocatable": allocatable}}


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
    claimed = {"claims": [{"driver": cast.GPU_DRIVER, "device": "gpu-1"}]}
    board.hold(
        [fpga("fpga-0")],
        [
            holder("b", **claimed),
            holder("a", **claimed),
            holder("c", devices=[{"resource": cast.FPGA, "ids": ["fpga-0"]}]),
        ],
    )
    assert rows(board, "Devices") == [
        ("laptop", "example.com/fpga", "fpga-0", "device plugin, Healthy", "c"),
        ("laptop", "gpu.example.com", "gpu-0", "M, 8Gi", "–"),
        ("laptop", "gpu.example.com", "gpu-1", "M, 8Gi", "a, b"),
    ]


def test_a_claim_that_is_not_prepared_yet_holds_no_device() -> None:
    board = Board()
    board.hold([], [holder("a", claims=[{"name": "gpu", "claim": "c", "driver": cast.GPU_DRIVER}])])
    assert board.held_by("a") == []


def test_what_is_gone_leaves_the_board() -> None:
    board = Board()
    see(board, cast.claim("c"))
    assert rows(board, "Resource claims") == [("c", "pending", "–", "–")]
    board.see("ResourceClaim", Changed(("demo", "c"), cast.claim("c"), None))
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
def test_the_state_of_a_claim_is_told_in_the_words_of_kubectl(status: Document, row: tuple[str, ...]) -> None:
    board = Board()
    see(board, {**cast.claim("c"), "status": status})
    assert rows(board, "Resource claims") == [row]


def test_pods_tell_what_they_ask_for_and_what_their_containers_get() -> None:
    board = Board()
    see(board, pod("a", resourceClaimName="c"), pod("b", resourceClaimTemplateName="t"))
    see(board, {**cast.pod("c", fpgas=2), "status": {"phase": "Running"}})
    board.hold([], [holder("c", oci={"process": {"env": ["FPGA=fpga-0,fpga-1"]}})])
    assert [(row[0], row[1], row[3], row[4]) for row in rows(board, "Pods")] == [
        ("a", "Pending", "c", "–"),
        ("b", "Pending", "template t", "–"),
        ("c", "Running", "2 example.com/fpga", "FPGA=fpga-0,fpga-1"),
    ]


def test_the_last_events_are_shown_and_one_that_happens_again_comes_last() -> None:
    board = Board()
    see(board, *(event(f"e{i}", "p", f"R{i}", "m") for i in range(9)), event("e5", "p", "R5", "again"))
    assert [row[0] for row in rows(board, "Last events")] == ["R3", "R4", "R6", "R7", "R8", "R5"]
    assert rows(board, "Last events")[-1] == ("R5", "pod/p", "again")


def test_why_a_pod_waits_is_what_the_last_event_about_its_scheduling_says() -> None:
    board = Board()
    see(board, event("e1", "p", "FailedScheduling", "old"), event("e2", "p", "FailedScheduling", "new"))
    see(board, event("e3", "p", "Scheduled", "on"), event("e4", "q", "FailedScheduling", "other"))
    assert (board.why_pending("p"), board.why_pending("nobody")) == ("new", "")


def test_what_the_node_offers_is_known() -> None:
    board = Board()
    see(board, node(**{cast.FPGA: "2"}), gpu_slice("gpu-0"), pod("a", "Running"))
    assert board.is_offered(cast.FPGA, 2) and not board.is_offered(cast.FPGA, 3)
    assert board.is_published("gpu-0") and not board.is_published("gpu-0", "gpu-1")
    assert (board.phase("a"), board.phase("b")) == ("Running", "")


@pytest.mark.anyio
@pytest.mark.parametrize("change", [lambda b: b.note("hello"), lambda b: see(b, node()), lambda b: b.hold([], [])])
async def test_every_change_is_announced(change: Callable[[Board], None]) -> None:
    board = Board()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(board.changed)
        await anyio.lowlevel.checkpoint()
        change(board)


@pytest.mark.anyio
async def test_one_can_wait_for_a_change() -> None:
    board = Board()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(board.until, lambda: board.phase("a") == "Running")
        await anyio.lowlevel.checkpoint()
        see(board, pod("a", "Running"))


@pytest.mark.anyio
async def test_what_was_seen_before_anybody_waited_counts_once() -> None:
    board = Board()
    see(board, node())
    await board.seen()
    with anyio.move_on_after(0) as scope:
        await board.seen()
    assert scope.cancelled_caught
