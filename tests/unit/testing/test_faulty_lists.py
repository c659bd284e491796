"""That each bug is found is shown by tests/unit/sanity/checks."""

from devlet.testing import faulty_lists


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in faulty_lists.BUGS}
    assert kinds == {"CHANGE", "KILL", "LIST"}
    assert len(set(faulty_lists.BUGS.values())) == len(faulty_lists.BUGS)
