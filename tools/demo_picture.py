"""Draw docs/demo.svg: the last screen of `devlet demo`, for the README."""

import re
import sys
from functools import partial
from io import StringIO
from pathlib import Path

import anyio
from rich.console import Console

from devlet.demo.board import Board
from devlet.demo.live import screen
from devlet.demo.tour import ABOUT, tour


def main(target: Path) -> None:
    board = Board()
    anyio.run(tour, board, partial(anyio.sleep, 0))
    console = Console(record=True, width=110, file=StringIO(), force_terminal=True)
    console.print(screen(board, ABOUT))
    svg = console.export_svg(title="devlet demo")
    # Use the reader's monospace font, so that displaying the picture downloads nothing.
    svg = re.sub(r"@font-face \{.*?\}\n?|<!--.*?-->", "", svg, flags=re.DOTALL)
    target.write_text(svg.replace("Fira Code, ", ""))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/demo.svg"))
