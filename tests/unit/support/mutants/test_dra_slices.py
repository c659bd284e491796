"""That each bug is found is shown by tests/unit/sanity/checks/dra."""

from tests.support.mutants import dra_slices


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in dra_slices.BUGS}
    assert kinds == {"CHANGE", "SLICE"}
    assert len(set(dra_slices.BUGS.values())) == len(dra_slices.BUGS)
