"""That each bug is found is shown by tests/unit/sanity/checks/dra."""

from tests.support.mutants import dra_files


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in dra_files.BUGS}
    assert kinds == {"CDI", "KILL", "META", "UNPREP"}
    assert len(set(dra_files.BUGS.values())) == len(dra_files.BUGS)
