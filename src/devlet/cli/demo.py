"""`devlet demo`: the tour, live on a terminal or as its final state."""

import logging
import sys
from functools import partial

import anyio
import click

from devlet.cli.terminal import own
from devlet.demo import plain
from devlet.demo.board import Board
from devlet.demo.tour import ABOUT, tour

_SECONDS_PER_STEP = 2.0


@click.command(epilog="\b\nExamples:\n  devlet demo\n  devlet demo --once")
@click.option("--once", is_flag=True, help="Print the final state and exit; so it is where output is not a terminal.")
def command(once: bool) -> None:
    """Show on this machine what devlet does.

    Runs a node with the embedded API, two drivers with fake devices, pods and claims in a temporary directory, and
    shows who gets what and who waits for what. Needs no root and no network. Exits with 1 if it is not as told."""
    logging.getLogger("devlet").addHandler(logging.NullHandler())  # or the node's lines get among ours
    if once or not sys.stdout.isatty():
        _once()
    else:
        _live()


def _once() -> None:
    board = Board()
    try:
        anyio.run(tour, board, partial(anyio.sleep, 0))
    finally:
        click.echo(plain.text(board, ABOUT))


def _live() -> None:
    from rich.console import Console

    from devlet.demo.live import perform

    anyio.run(
        perform, partial(tour, pause=partial(anyio.sleep, _SECONDS_PER_STEP)), ABOUT, Console(file=own(sys.stdout))
    )
