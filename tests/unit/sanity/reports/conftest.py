import pytest

from devlet.sanity.check import Check, Failed, Outcome, Passed, Skipped, Warned
from devlet.sanity.report import Report, Result
from devlet.sanity.sources import Source

SOURCE = Source("the law", "https://law.example/?a&b")


async def nothing(rig: object) -> Outcome:
    return Passed()


@pytest.fixture
def report() -> Report:
    """One result of each kind, with characters that forms have to escape."""
    outcomes: tuple[Outcome, ...] = (
        Passed("fine"),
        Failed("a <b> & \x1b[31mc\nsecond"),
        Warned("hm"),
        Skipped("no devices"),
    )
    results = tuple(
        Result(
            Check(f"DP-X-{n}", "It is <good>", "be good", "look", nothing, SOURCE),
            outcome,
            0.5,
            "log & tail" * (n == 2),
        )
        for n, outcome in enumerate(outcomes, 1)
    )
    return Report("device-plugin", "./x '<y>'", 7, "2026-01-02T03:04:05Z", 2.0, results, "it ended")
