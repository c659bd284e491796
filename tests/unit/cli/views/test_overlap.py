"""Overlaps in words."""

from devlet.cli.views import overlap
from devlet.objects.claims.overlaps import Overlap


def test_each_overlap_is_a_sentence_and_what_to_do_follows_once() -> None:
    claims = (("default", "a"), ("default", "b"))
    found = [*overlap.lines([Overlap("device d", "", claims), Overlap("device e", "memory", claims)])]
    assert found[:4] == [
        "",
        "Overlaps:",
        "  device d is allocated to two claims: default/a and default/b",
        "  claims default/a and default/b together hold more memory of device e than it has",
    ]
    assert sum("Delete the pods of all claims but one" in line for line in found) == 1


def test_names_cannot_move_the_cursor() -> None:
    found = "\n".join(overlap.lines([Overlap("device \x1b[2J", "", (("n", "a"), ("n", "b")))]))
    assert "\x1b" not in found
