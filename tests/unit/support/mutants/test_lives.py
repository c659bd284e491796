"""That each bug is found is shown by tests/unit/sanity/checks."""

from tests.support.mutants import lives


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in lives.BUGS}
    assert kinds == {"KILL", "CALL", "STOP"}
    assert len(set(lives.BUGS.values())) == len(lives.BUGS)
