import io

from rich.console import Console

from devlet.cluster.informer import Changed
from devlet.demo import cast
from devlet.demo.board import Board
from devlet.demo.live import screen


def test_the_screen_shows_notes_and_tables() -> None:
    board = Board()
    board.see("Pod", Changed(("demo", "train"), None, {**cast.pod("train"), "status": {"phase": "Running"}}))
    board.note("[bold]not markup[/bold]")
    console = Console(file=io.StringIO(), width=100)
    console.print(screen(board, ["about"]))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert all(part in text for part in ("about", "[bold]not markup[/bold]", "train", "Running", "Devices"))
