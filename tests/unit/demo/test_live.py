import io

from rich.console import Console

from devlet.cluster.client import EventType, WatchEvent
from devlet.demo import cast
from devlet.demo.board import Board
from devlet.demo.live import screen


def test_the_screen_shows_notes_tables_and_events() -> None:
    board = Board()
    slice_ = cast.slice_of("gpu-0")
    slice_["metadata"]["resourceVersion"] = "5"
    board.see(WatchEvent(EventType.ADDED, slice_))
    board.note("[bold]not markup[/bold]")
    console = Console(file=io.StringIO(), width=100)
    console.print(screen(board, ["about"]))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert all(part in text for part in ("about", "[bold]not markup[/bold]", "gpu-0", "ADDED", "Pods"))
