"""`devlet demo`: the tour, live on a terminal or as its final state."""

import sys
from functools import partial

import anyio
import click

from devlet.demo import plain
from devlet.demo.board import Board
from devlet.demo.tour import ABOUT, tour

_SECONDS_PER_STEP = 0.8


@click.command(epilog="\b\nExamples:\n  devlet demo\n  devlet demo --once")
@click.option("--once", is_flag=True, help="Print the final state and exit; so it is where output is not a terminal.")
def command(once: bool) -> None:
    """Show on this machine what devlet does so far.

    Runs an embedded cluster in a temporary directory, with fake GPUs, claims and pods; needs no root and no network."""
    if once or not sys.stdout.isatty():
        board = Board()
        anyio.run(tour, board, partial(anyio.sleep, 0))
        click.echo(plain.text(board, ABOUT))
    else:
        _live()


def _live() -> None:
    from rich.live import Live

    from devlet.demo.live import screen

    with Live(auto_refresh=False) as live:
        board = Board(changed=lambda: live.update(screen(board, ABOUT), refresh=True))
        anyio.run(tour, board, partial(anyio.sleep, _SECONDS_PER_STEP))
