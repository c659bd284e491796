import os
import tempfile
from pathlib import Path

import pytest
from anyio.lowlevel import checkpoint

from devlet.demo.board import Board
from devlet.demo.tour import tour


@pytest.fixture
async def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Board:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    board = Board()
    await tour(board, checkpoint)
    return board


@pytest.mark.anyio
async def test_the_tour_ends_with_devices_a_claim_and_pods(board: Board) -> None:
    tables = {table.title: table.rows for table in board.tables()}
    assert [row[3] for row in tables["Devices"]] == ["gpu-0", "gpu-1", "gpu-2"]
    assert [row[:3] for row in tables["Resource claims"]] == [("demo", "shared-gpu", "pending")]
    assert [row[1:3] for row in tables["Pods"]] == [("after-restart", "Pending"), ("train", "Pending")]


@pytest.mark.anyio
async def test_the_refused_object_is_shown_with_its_field(board: Board) -> None:
    refusals = [note for note in board.notes if note.startswith("Refused")]
    assert len(refusals) == 1
    assert "spec.devices.requests[0].exactly.count" in refusals[0]


@pytest.mark.anyio
async def test_the_watches_resume_after_the_restart_without_repeats(board: Board) -> None:
    events = next(table.rows for table in board.tables() if table.title == "Last watch events")
    assert len(set(events)) == len(events)
    assert events[-1][:3] == ("ADDED", "Pod", "demo/after-restart")
    assert events[-2][:3] == ("DELETED", "Pod", "demo/notebook")


@pytest.mark.anyio
async def test_nothing_is_lost_and_nothing_is_left_behind(board: Board, tmp_path: Path) -> None:
    restarted = next(note for note in board.notes if note.startswith("Started again"))
    kept, shown = [int(word) for word in restarted.split() if word.isdigit()]
    assert kept == shown > 0
    assert os.listdir(tmp_path) == []
