"""That each bug is found is shown by tests/unit/sanity/checks/dra."""

from tests.support.mutants import dra_claims


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in dra_claims.BUGS}
    assert kinds == {"PREP"}
    assert len(set(dra_claims.BUGS.values())) == len(dra_claims.BUGS)
