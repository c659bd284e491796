from devlet.cluster.client import EventType, WatchEvent
from devlet.demo import cast, plain
from devlet.demo.board import Board


def test_columns_are_aligned_and_notes_come_first() -> None:
    board = Board()
    slice_ = cast.slice_of("gpu-0", "gpu-10")
    slice_["metadata"]["resourceVersion"] = "5"
    board.see(WatchEvent(EventType.ADDED, slice_))
    board.note("hello")
    lines = plain.text(board, ["about"]).splitlines()
    assert lines[:5] == [
        "about",
        "",
        "* hello",
        "",
        "Devices",
    ]
    assert lines[5:8] == [
        "  SLICE         DRIVER            POOL     DEVICE   MODEL            MEMORY",
        "  laptop-gpus   gpu.example.com   laptop   gpu-0    Imaginary 9000   40Gi",
        "  laptop-gpus   gpu.example.com   laptop   gpu-10   Imaginary 9000   40Gi",
    ]


def test_an_empty_board_has_headers_only() -> None:
    assert "  NAMESPACE   NAME   PHASE   CLAIMS" in plain.text(Board(), []).splitlines()
