from devlet.node.newest import newest
from devlet.objects.documents import Document


def at(version: str) -> Document:
    return {"metadata": {"resourceVersion": version}}


def test_what_was_seen_counts_unless_a_newer_state_is_known() -> None:
    old, new = at("9"), at("10")
    assert newest(None, old) is old
    assert newest(old, new) is new
    assert newest(new, old) is new


def test_versions_that_are_no_numbers_are_not_compared() -> None:
    one, other = at("b"), at("a")
    assert newest(one, other) is other
