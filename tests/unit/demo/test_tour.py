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
    """The board after the tour."""
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


def test_every_pod_with_a_device_runs_and_its_environment_names_the_device(board: Board) -> None:
    devices = {name: board.held_by(name)[0] for name in ("batch", "capture", "filter", "infer", "notebook", "viewer")}
    assert [(row[0], row[1], row[4]) for row in rows(board, "Pods") if row[0] != "render"] == [
        (name, "Running", f"{device.partition('-')[0].upper()}={device}") for name, device in devices.items()
    ]


def test_the_pod_whose_gpu_is_taken_is_pending(board: Board) -> None:
    assert [row[1:] for row in rows(board, "Pods") if row[0] == "render"] == [
        ("Pending", "–", "template large-gpu", "–")
    ]
    assert board.why_pending("render").startswith("0/1 nodes are available")


def test_the_claim_of_the_deleted_pod_is_gone(board: Board) -> None:
    claims = rows(board, "Resource claims")
    assert [row[0].rpartition("-")[0] for row in claims[:3]] == ["batch-gpu", "infer-gpu", "render-gpu"]
    assert [row[1] for row in claims] == ["allocated,reserved", "allocated,reserved", "pending", "allocated,reserved"]
    assert claims[3][0] == "shared" and claims[3][3] == "notebook, viewer"


def test_an_event_reported_why_the_pod_waited(board: Board) -> None:
    assert board.why_pending("batch").startswith("0/1 nodes are available")
    assert any(board.why_pending("batch") in note for note in board.notes)


def test_nothing_is_left_behind(board: Board, place: Path) -> None:
    assert board.notes and os.listdir(place) == []


def test_an_unexpected_result_ends_the_tour_with_an_error(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(drivers.GPUS, "gpu-2", Gpu("gpu-2"))  # so none is large enough
    monkeypatch.setattr(tour, "PATIENCE", 0.0)
    broken = pytest.RaisesExc(Unavailable, match="did not happen")
    with pytest.RaisesGroup(broken, flatten_subgroups=True):
        anyio.run(tour.tour, Board(), partial(anyio.sleep, 0))
    assert os.listdir(place) == []


def test_tmp_is_used_if_the_path_of_the_usual_temporary_directory_is_too_long(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = root / ("x" * 50)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    assert tour._place() == "/tmp"


def test_the_node_still_runs_afterwards(place: Path) -> None:
    roots: list[Path] = []

    async def afterwards(root: Path) -> None:
        roots.append(root)
        assert (root / "kubeconfig").exists()

    anyio.run(tour.tour, Board(), partial(anyio.sleep, 0), afterwards)
    assert [root.parent for root in roots] == [place]


def test_the_suggested_commands_name_the_program_and_the_root() -> None:
    commands = [suggestion.command for suggestion in tour.suggestions(".venv/bin/devlet", Path("/tmp/dv1"))]
    assert len(commands) == 3
    assert all(text.startswith(".venv/bin/devlet ") and text.endswith(" --root /tmp/dv1") for text in commands)
