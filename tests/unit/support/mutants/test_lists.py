"""That each bug is found is shown by tests/unit/sanity/checks."""

from tests.support.mutants import lists


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in lists.BUGS}
    assert kinds == {"CHANGE", "KILL", "LIST"}
    assert len(set(lists.BUGS.values())) == len(lists.BUGS)
