"""Pods for whose kind there is no place."""

from devlet.control.scheduler.hopeless import Hopeless


def test_a_kind_is_hopeless_until_something_happens() -> None:
    hopeless = Hopeless()
    hopeless.add("large", 1)
    assert hopeless.has("large", 1) and not hopeless.has("small", 1)
    assert not hopeless.has("large", 2)
    assert not hopeless.has("large", 1)
