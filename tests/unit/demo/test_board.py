import anyio
import pytest

from devlet.cluster.client import EventType, WatchEvent
from devlet.demo import cast
from devlet.demo.board import Board
from devlet.objects.documents import Document


def event(type_: EventType, document: Document, version: int) -> WatchEvent:
    metadata = {**document["metadata"], "resourceVersion": str(version)}
    return WatchEvent(type_, {**document, "metadata": metadata})


def rows(board: Board, title: str) -> list[tuple[str, ...]]:
    return next(table.rows for table in board.tables() if table.title == title)


def test_devices_are_listed_one_by_one() -> None:
    board = Board()
    board.see(event(EventType.ADDED, cast.slice_of("gpu-0", "gpu-1"), 5))
    assert rows(board, "Devices") == [
        ("laptop-gpus", "gpu.example.com", "laptop", f"gpu-{i}", "Imaginary 9000", "40Gi") for i in range(2)
    ]


def test_a_deleted_object_leaves_the_board_and_its_event_stays() -> None:
    board = Board()
    board.see(event(EventType.ADDED, cast.claim("c"), 5))
    assert rows(board, "Resource claims") == [("demo", "c", "pending", "gpu: 1 × gpu.example.com")]
    board.see(event(EventType.DELETED, cast.claim("c"), 6))
    assert rows(board, "Resource claims") == []
    assert rows(board, "Last watch events")[-1] == ("DELETED", "ResourceClaim", "demo/c", "6")
    assert (board.count(), board.version("ResourceClaim")) == (0, 6)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({}, "pending"),
        ({"allocation": {"devices": {}}}, "allocated"),
        ({"allocation": {"devices": {}}, "reservedFor": [{"name": "p"}]}, "allocated,reserved"),
    ],
)
def test_the_state_of_a_claim_is_told_in_the_words_of_kubectl(status: Document, state: str) -> None:
    board = Board()
    board.see(event(EventType.ADDED, {**cast.claim("c"), "status": status}, 5))
    assert rows(board, "Resource claims")[0][2] == state


def test_pods_tell_where_their_claims_come_from() -> None:
    board = Board()
    for number, pod in enumerate((cast.pod("a", resourceClaimName="c"), cast.pod("b", resourceClaimTemplateName="t"))):
        board.see(event(EventType.ADDED, {**pod, "status": {"phase": "Pending"}}, number + 1))
    assert [row[3] for row in rows(board, "Pods")] == ["c", "from template t"]


def test_every_change_is_announced() -> None:
    announced: list[str] = []
    board = Board(changed=lambda: announced.append("changed"))
    board.note("hello")
    board.see(event(EventType.ADDED, cast.namespace(), 1))
    assert announced == ["changed", "changed"]


@pytest.mark.anyio
async def test_one_can_wait_for_a_change() -> None:
    board = Board()
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(5):
            tasks.start_soon(anyio.lowlevel.checkpoint)
            board.see(event(EventType.ADDED, cast.namespace(), 1))
            await board.reached("Namespace", 1)
    assert board.version("Namespace") == 1
