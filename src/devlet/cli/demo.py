"""`devlet demo`: live on a terminal, or the final state as plain text."""

import logging
import os
import shlex
import shutil
import sys
from functools import partial
from pathlib import Path

import anyio
import click

from devlet.cli.terminal import own
from devlet.demo import plain
from devlet.demo.board import Board
from devlet.demo.tour import ABOUT, suggestions, tour

_SECONDS_PER_STEP = 2.0


@click.command(epilog="\b\nExamples:\n  devlet demo\n  devlet demo --once")
@click.option("--once", is_flag=True, help="Print the final state and exit. This is the default without a terminal.")
def command(once: bool) -> None:
    """Show what devlet does, on this machine.

    Runs a node with the embedded API, two drivers with simulated devices, pods and claims in a temporary directory.
    Shows which pod gets which device, and why a pod has to wait. On a terminal, the demo keeps running until Ctrl-C and
    prints commands to try. Needs no root and no network. Exits with 1 if a step does not have the expected result."""
    logging.getLogger("devlet").addHandler(logging.NullHandler())  # keep the node's log lines out of the picture
    if once or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
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

    from devlet.demo.live import show

    anyio.run(show, _play, ABOUT, Console(file=own(sys.stdout)))


async def _play(board: Board) -> None:
    async def stay(root: Path) -> None:
        board.suggest(suggestions(_program(sys.argv[0]), root))
        await anyio.sleep_forever()

    await tour(board, partial(anyio.sleep, _SECONDS_PER_STEP), stay)


def _program(started: str) -> str:
    """Return how the user can start this program again, from the same directory."""
    if Path(started).name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m devlet"
    found = shutil.which("devlet")
    return "devlet" if found and Path(found) == Path(started).absolute() else shlex.quote(started)
