import io
import os
import signal

import anyio
import pytest
from rich.console import Console

from devlet.cluster.informer import Changed
from devlet.demo import manifests
from devlet.demo.board import Board, Suggestion
from devlet.demo.live import screen, show
from devlet.errors import InvalidInput


def test_the_screen_shows_notes_and_tables() -> None:
    board = Board()
    board.see("Pod", Changed(("demo", "train"), None, {**manifests.pod("train"), "status": {"phase": "Running"}}))
    board.note("[bold]not markup[/bold]")
    console = Console(file=io.StringIO(), width=100)
    console.print(screen(board, ["about"]))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert all(part in text for part in ("about", "[bold]not markup[/bold]", "train", "Running", "Devices"))


def drawn(board: Board, height: int) -> str:
    console = Console(file=io.StringIO(), width=100, height=height)
    console.print(screen(board, ["about"], console))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("height", "missing"),
    [
        (21, []),
        (20, ["Last events"]),
        (17, ["Last events", "Resource claims"]),
        (12, ["Last events", "Resource claims", "about", "first note", "Pods"]),
    ],
)
def test_a_small_terminal_shows_the_most_important_parts(height: int, missing: list[str]) -> None:
    board = Board()
    for note in ("first note", "second note", "last note"):
        board.note(note)
    board.suggest([Suggestion("Look:", "devlet get pods")])
    parts = ["about", "first note", "last note", "devlet get pods", "Devices", "Resource claims", "Pods", "Last events"]
    text = drawn(board, height)
    assert [part for part in parts if part not in text] == [part for part in parts if part in missing]
    assert len(text.splitlines()) < height


@pytest.mark.anyio
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_the_demo_without_an_error(number: signal.Signals) -> None:
    async def run(board: Board) -> None:
        board.suggest([Suggestion("Look:", "devlet get pods")])
        os.kill(os.getpid(), number)
        await anyio.sleep_forever()

    output = io.StringIO()
    await show(run, ["about"], Console(file=output, width=100))
    assert "The demo has ended." in output.getvalue()
    assert "devlet get pods" not in output.getvalue().rpartition("The demo has ended.")[2]


@pytest.mark.anyio
@pytest.mark.parametrize("fails", [False, True])
async def test_the_last_picture_shows_the_last_note(fails: bool) -> None:
    async def run(board: Board) -> None:
        board.note("the first")
        board.note("the last")
        if fails:
            raise InvalidInput("no")

    output = io.StringIO()
    try:
        await show(run, ["about"], Console(file=output, width=100))
    except* InvalidInput:
        assert fails
    assert output.getvalue().rindex("the last") > output.getvalue().rindex("the first")
