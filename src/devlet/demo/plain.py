"""The board as plain text, for pipes and files."""

from collections.abc import Iterator, Sequence

from devlet.demo.board import Board, Row, Table


def text(board: Board, about: Sequence[str]) -> str:
    return "\n".join([*about, *_notes(board), *(line for table in board.tables() for line in _lines(table))])


def _notes(board: Board) -> Iterator[str]:
    yield ""
    yield from (f"* {note}" for note in board.notes)


def _lines(table: Table) -> Iterator[str]:
    rows: list[Row] = [table.columns, *table.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield ""
    yield table.title
    for row in rows:
        yield "  " + "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
