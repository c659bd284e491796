"""That each bug is found is shown by tests/unit/sanity/checks/dra."""

from tests.support.mutants import dra_health


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in dra_health.BUGS}
    assert kinds == {"CALL", "CHANGE", "HEALTH"}
    assert len(set(dra_health.BUGS.values())) == len(dra_health.BUGS)
