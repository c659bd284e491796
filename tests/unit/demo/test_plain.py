from devlet.cluster.informer import Changed
from devlet.demo import manifests, plain
from devlet.demo.board import Board


def test_columns_are_aligned_and_notes_come_first() -> None:
    board = Board()
    for name in ("c", "much-longer"):
        board.see("ResourceClaim", Changed(("demo", name), None, manifests.claim(name)))
    board.note("hello")
    lines = plain.text(board, ["about"]).splitlines()
    assert lines[:5] == ["about", "", "* hello", "", "Devices"]
    start = lines.index("Resource claims")
    assert lines[start + 1 : start + 4] == [
        "  NAME          STATE     DEVICE   RESERVED FOR",
        "  c             pending   –        –",
        "  much-longer   pending   –        –",
    ]


def test_an_empty_board_has_headers_only() -> None:
    assert "  NAME   PHASE   NODE   ASKS FOR   GETS" in plain.text(Board(), []).splitlines()
