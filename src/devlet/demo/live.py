"""The board on a terminal, redrawn with every change."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from devlet.demo.board import Board, Table

_STYLES = {
    "Running": "green",
    "Pending": "yellow",
    "pending": "yellow",
    "allocated,reserved": "green",
    "Scheduled": "green",
    "FailedScheduling": "red",
}


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
