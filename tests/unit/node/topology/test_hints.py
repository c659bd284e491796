"""Hints as values."""

from devlet.node.topology.hints import Hint, Hints
from devlet.objects.identifiers import ResourceName


def test_hints_are_values() -> None:
    assert Hint(0b11, True) == Hint(0b11, True)
    assert len({Hint(0b11, True), Hint(0b11, True), Hint(0b11, False)}) == 2


def test_no_mask_differs_from_the_empty_mask() -> None:
    assert Hint(None, True) != Hint(0, True)


def test_no_preference_differs_from_impossible() -> None:
    resource = ResourceName("example.com/gpu")
    indifferent: Hints = {resource: None}
    impossible: Hints = {resource: ()}
    assert indifferent != impossible
