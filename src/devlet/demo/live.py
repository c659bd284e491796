"""The board on a terminal. It is redrawn after each change, but at most ten times a second."""

import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial

import anyio
from anyio import TASK_STATUS_IGNORED, CancelScope, create_task_group, open_signal_receiver
from anyio.abc import TaskStatus
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from devlet.demo.board import Board, Suggestion, Table
from devlet.kit.parts import running

_BETWEEN = 0.1  # seconds between two pictures

_TRY = "Try these in another terminal, from the directory where you started the demo. Ctrl-C ends the demo."
_ENDED = "The demo has ended. Everything that it created on this machine was removed."
_STYLES = {
    "Running": "green",
    "Pending": "yellow",
    "pending": "yellow",
    "allocated,reserved": "green",
    "Scheduled": "green",
    "FailedScheduling": "red",
}


async def show(run: Callable[[Board], Awaitable[None]], about: Sequence[str], console: Console | None = None) -> None:
    """Show the board while `run` runs, until it returns or the user presses Ctrl-C. The last picture stays."""
    board = Board()
    with Live(auto_refresh=False, console=console) as live:
        try:
            async with running(partial(_draw, live, board, about)):
                if await _interrupted(partial(run, board)):
                    board.note(_ENDED)
        finally:
            board.suggest(())  # there is nothing left that they could talk to
            live.update(screen(board, about, live.console), refresh=True)


async def _interrupted(run: Callable[[], Awaitable[None]]) -> bool:
    """Run the function, and return True if a signal ended it."""
    async with create_task_group() as tasks:
        await tasks.start(_cancel_at_signal, tasks.cancel_scope)
        await run()
        tasks.cancel_scope.cancel()
        return False
    return True


async def _cancel_at_signal(scope: CancelScope, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
    with open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        task_status.started()
        async for _ in signals:
            scope.cancel()


async def _draw(
    live: Live, board: Board, about: Sequence[str], *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED
) -> None:
    task_status.started()
    while True:
        drawn = board.changes.version
        live.update(screen(board, about, live.console), refresh=True)
        await board.changes.after(drawn)
        await anyio.sleep(_BETWEEN)


def screen(board: Board, about: Sequence[str], console: Console | None = None) -> RenderableType:
    """Return the picture: all of it, or as much as fits on the terminal."""
    introduction = [Text(line, style="dim") for line in about]
    notes = [Text(f"• {note}", style="bold") for note in board.notes]
    suggestions = [Group(*_suggestions(board.suggestions))] if board.suggestions else []
    devices, claims, pods, events = map(_table, board.tables())
    parts: list[RenderableType] = [*introduction, *notes, *suggestions, devices, claims, pods, events]
    if console is None:
        return Group(*parts)
    expendable = [events, claims, *introduction, *notes[:-2], pods, *notes[:-1]]  # in this order
    return Group(*_fitting(parts, expendable, console))


def _fitting(
    parts: Sequence[RenderableType], expendable: Sequence[RenderableType], console: Console
) -> list[RenderableType]:
    """Leave out expendable parts, the first ones first, until the rest is not higher than the terminal."""
    left = {id(part): len(console.render_lines(part)) for part in parts}
    for part in expendable:
        if sum(left.values()) < console.size.height:
            break
        left.pop(id(part), None)
    return [part for part in parts if id(part) in left]


def _suggestions(suggestions: Sequence[Suggestion]) -> Iterator[RenderableType]:
    yield Text(f"\n{_TRY}", style="dim")
    for suggestion in suggestions:
        yield Text(f"  {suggestion.purpose}")
        yield Text(f"    {suggestion.command}", style="cyan", no_wrap=True, overflow="fold")


def _table(table: Table) -> RenderableType:
    """Return the table without lines: the whole board should fit on a small screen."""
    drawn = RichTable(title=table.title, title_justify="left", title_style="bold", header_style="dim", box=None)
    for column in table.columns:
        drawn.add_column(column)
    for row in table.rows:
        drawn.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    return Padding(drawn, (1, 0, 0, 0))
