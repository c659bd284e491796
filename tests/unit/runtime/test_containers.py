from datetime import UTC, datetime

from devlet.runtime.containers import Exit, Run, lost, reason_for

NOW = datetime(2025, 1, 1, tzinfo=UTC)


def test_exit_code_zero_means_completed_and_any_other_error() -> None:
    assert (reason_for(0), reason_for(3)) == ("Completed", "Error")


def test_a_run_is_running_until_it_has_an_exit() -> None:
    assert Run("x://1", 0, NOW).is_running
    assert not Run("x://1", 0, NOW, Exit(0, NOW, "Completed")).is_running


def test_a_lost_run_is_shown_as_by_the_kubelet() -> None:
    exit = lost(NOW)
    assert exit.is_lost and (exit.code, exit.reason) == (137, "ContainerStatusUnknown")
    assert not Exit(137, NOW, "Error").is_lost
