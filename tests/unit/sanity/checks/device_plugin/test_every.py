from devlet.sanity.check import Failed, Passed, Skipped, Warned
from devlet.sanity.checks.device_plugin.every import worst


def test_the_worst_of_several_plugins_counts() -> None:
    assert worst([Passed(), Failed("x"), Warned("y")]) == Failed("x")
    assert worst([Passed(), Warned("y"), Skipped("z")]) == Warned("y")


def test_what_was_seen_of_one_plugin_was_seen() -> None:
    assert worst([Skipped("no devices"), Passed()]) == Passed()
    assert worst([Skipped("no devices")]) == Skipped("no devices")
