"""That each bug is found is shown by tests/unit/sanity/checks."""

from devlet.testing import faulty_lives


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in faulty_lives.BUGS}
    assert kinds == {"KILL", "CALL", "STOP"}
    assert len(set(faulty_lives.BUGS.values())) == len(faulty_lives.BUGS)
