"""That each bug is found is shown by tests/unit/sanity/checks/dra."""

from tests.support.mutants import dra_lives


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in dra_lives.BUGS}
    assert kinds == {"CALL", "KILL", "STOP", "TWO"}
    assert len(set(dra_lives.BUGS.values())) == len(dra_lives.BUGS)
