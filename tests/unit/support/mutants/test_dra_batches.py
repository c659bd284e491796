"""That each bug is found is shown by tests/unit/sanity/checks/dra."""

from tests.support.mutants import dra_batches


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in dra_batches.BUGS}
    assert kinds == {"BATCH"}
    assert len(set(dra_batches.BUGS.values())) == len(dra_batches.BUGS)
