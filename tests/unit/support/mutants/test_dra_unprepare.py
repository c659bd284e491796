"""That each bug is found is shown by tests/unit/sanity/checks/dra."""

from tests.support.mutants import dra_unprepare


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in dra_unprepare.BUGS}
    assert kinds == {"UNPREP"}
    assert len(set(dra_unprepare.BUGS.values())) == len(dra_unprepare.BUGS)
