import io

import pytest
from rich.console import Console

from devlet.cluster.informer import Changed
from devlet.demo import cast
from devlet.demo.board import Board
from devlet.demo.live import perform, screen
from devlet.errors import InvalidInput


def test_the_screen_shows_notes_and_tables() -> None:
    board = Board()
    board.see("Pod", Changed(("demo", "train"), None, {**cast.pod("train"), "status": {"phase": "Running"}}))
    board.note("[bold]not markup[/bold]")
    console = Console(file=io.StringIO(), width=100)
    console.print(screen(board, ["about"]))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert all(part in text for part in ("about", "[bold]not markup[/bold]", "train", "Running", "Devices"))


@pytest.mark.anyio
@pytest.mark.parametrize("fails", [False, True])
async def test_the_last_picture_shows_what_came_last(fails: bool) -> None:
    async def act(board: Board) -> None:
        board.note("the first")
        board.note("the last")
        if fails:
            raise InvalidInput("no")

    output = io.StringIO()
    try:
        await perform(act, ["about"], Console(file=output, width=100))
    except* InvalidInput:
        assert fails
    assert output.getvalue().rindex("the last") > output.getvalue().rindex("the first")
