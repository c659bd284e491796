"""That each bug is found is shown by tests/unit/sanity/checks/dra."""

from devlet.testing import faulty_dra_files


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in faulty_dra_files.BUGS}
    assert kinds == {"CDI", "KILL", "META", "UNPREP"}
    assert len(set(faulty_dra_files.BUGS.values())) == len(faulty_dra_files.BUGS)
