"""The board on a terminal, redrawn when it has changed, but not so often that drawing is all that happens."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from devlet.demo.board import Board, Table
from devlet.kit.parts import running

_BETWEEN = 0.1  # seconds between two pictures

_STYLES = {
    "Running": "green",
    "Pending": "yellow",
    "pending": "yellow",
    "allocated,reserved": "green",
    "Scheduled": "green",
    "FailedScheduling": "red",
}


async def perform(
    act: Callable[[Board], Awaitable[None]], about: Sequence[str], console: Console | None = None
) -> None:
    """Show the board while the act goes on; the last picture stays."""
    board = Board()
    with Live(auto_refresh=False, console=console) as live:
        try:
            async with running(partial(_draw, live, board, about)):
                await act(board)
        finally:
            live.update(screen(board, about), refresh=True)


async def _draw(
    live: Live, board: Board, about: Sequence[str], *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED
) -> None:
    task_status.started()
    while True:
        live.update(screen(board, about), refresh=True)
        await board.changed()
        await anyio.sleep(_BETWEEN)


def screen(board: Board, about: Sequence[str]) -> RenderableType:
    notes = [Text(f"• {note}", style="bold") for note in board.notes]
    return Group(*(Text(line, style="dim") for line in about), *notes, *map(_table, board.tables()))


def _table(table: Table) -> RenderableType:
    """Without lines: the whole board should fit on a small screen."""
    drawn = RichTable(title=table.title, title_justify="left", title_style="bold", header_style="dim", box=None)
    for column in table.columns:
        drawn.add_column(column)
    for row in table.rows:
        drawn.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    return Padding(drawn, (1, 0, 0, 0))
