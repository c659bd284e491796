import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest

from devlet.demo import drivers, tour
from devlet.demo.board import Board
from devlet.errors import Unavailable
from devlet.examples.fake_gpu_dra import Gpu


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="d") as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", directory)
        yield Path(directory)


@pytest.fixture(scope="module")
def board(place: Path) -> Board:
    """As it is after the tour."""
    board = Board()
    anyio.run(tour.tour, board, partial(anyio.sleep, 0))
    return board


def rows(board: Board, title: str) -> list[tuple[str, ...]]:
    return next(table.rows for table in board.tables() if table.title == title)


def test_every_device_has_its_holders(board: Board) -> None:
    holders = {row[2]: row[4] for row in rows(board, "Devices")}
    assert {holders["fpga-0"], holders["fpga-1"]} == {"capture", "filter"}
    assert {holders["gpu-0"], holders["gpu-1"]} == {"batch", "notebook, viewer"}
    assert holders["gpu-2"] == "infer"


def test_every_pod_runs_and_its_container_is_told_its_device(board: Board) -> None:
    devices = {name: board.held_by(name)[0] for name in ("batch", "capture", "filter", "infer", "notebook", "viewer")}
    assert [(row[0], row[1], row[4]) for row in rows(board, "Pods")] == [
        (name, "Running", f"{device.partition('-')[0].upper()}={device}") for name, device in devices.items()
    ]


def test_the_claim_of_the_pod_that_was_deleted_is_gone(board: Board) -> None:
    claims = rows(board, "Resource claims")
    assert [row[0].rpartition("-")[0] for row in claims[:2]] == ["batch-gpu", "infer-gpu"]
    assert [row[1] for row in claims] == ["allocated,reserved"] * 3
    assert claims[2][0] == "shared" and claims[2][3] == "notebook, viewer"


def test_the_pod_that_waited_was_told_why(board: Board) -> None:
    assert board.why_pending("batch").startswith("0/1 nodes are available")
    assert any(board.why_pending("batch") in note for note in board.notes)


def test_nothing_is_left_behind(board: Board, place: Path) -> None:
    assert board.notes and os.listdir(place) == []


def test_a_promise_that_is_not_kept_ends_the_tour(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(drivers.GPUS, "gpu-2", Gpu("gpu-2"))  # so none is large enough
    monkeypatch.setattr(tour, "PATIENCE", 0.0)
    broken = pytest.RaisesExc(Unavailable, match="did not come true")
    with pytest.RaisesGroup(broken, flatten_subgroups=True):
        anyio.run(tour.tour, Board(), partial(anyio.sleep, 0))
    assert os.listdir(place) == []


def test_where_temporary_directories_have_long_names_there_is_a_shorter_one(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = root / ("x" * 50)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    monkeypatch.setattr(tour, "PATIENCE", 0.0)
    board = Board()
    with pytest.RaisesGroup(Unavailable, flatten_subgroups=True):
        anyio.run(tour.tour, board, partial(anyio.sleep, 0))
    assert "kubectl --kubeconfig /tmp/dv" in board.notes[0]
