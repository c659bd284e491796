from devlet.sanity.check import Check, Failed, Outcome, Passed
from devlet.sanity.progress import Progress
from devlet.sanity.report import Result


async def nothing(rig: object) -> Outcome:
    return Passed()


CHECK = Check("DP-REG-1", "It registers", "r", "h", nothing)


def said(progress: Progress, written: list[str]) -> str:
    progress.began(CHECK)
    progress.ended(Result(CHECK, Failed("never\nlog")))
    return "".join(written)


def test_there_is_one_line_for_each_check() -> None:
    written: list[str] = []
    assert said(Progress(written.append, written.append), written) == "failed  DP-REG-1     It registers: never\n"


def test_a_terminal_shows_what_is_under_way() -> None:
    written: list[str] = []
    text = said(Progress(written.append, written.append, live=True, colour=True, width=20), written)
    assert text.startswith("…       DP-REG-1   \r\x1b[2K\x1b[31mfailed  \x1b[0m")


def test_only_control_sequences_are_written_as_such() -> None:
    written: list[str] = []
    controls: list[str] = []
    progress = Progress(written.append, controls.append, live=True, colour=True)
    progress.ended(Result(CHECK, Failed("never")))
    assert controls == ["\r\x1b[2K", "\x1b[31m", "\x1b[0m"]
    assert "".join(written) == "failed  DP-REG-1     It registers: never\n"
