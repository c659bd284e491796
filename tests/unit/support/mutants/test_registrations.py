"""That each bug is found is shown by tests/unit/sanity/checks."""

from tests.support.mutants import registrations


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in registrations.BUGS}
    assert kinds == {"WATCH", "REG", "AGAIN"}
    assert len(set(registrations.BUGS.values())) == len(registrations.BUGS)
