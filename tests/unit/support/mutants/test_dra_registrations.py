"""That each bug is found is shown by tests/unit/sanity/checks/dra."""

from tests.support.mutants import dra_registrations


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in dra_registrations.BUGS}
    assert kinds == {"AGAIN", "REG"}
    assert len(set(dra_registrations.BUGS.values())) == len(dra_registrations.BUGS)
