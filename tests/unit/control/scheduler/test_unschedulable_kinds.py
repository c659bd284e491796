"""Kinds of pods that are known to be unschedulable."""

from devlet.control.scheduler.unschedulable_kinds import UnschedulableKinds


def test_a_kind_is_unschedulable_until_the_version_changes() -> None:
    kinds = UnschedulableKinds()
    kinds.add("large", 1, "too large")
    assert kinds.has("large", 1) and not kinds.has("small", 1)
    assert (kinds.reason("large", 1), kinds.reason("small", 1)) == ("too large", "")
    assert not kinds.has("large", 2)
    assert not kinds.has("large", 1)
