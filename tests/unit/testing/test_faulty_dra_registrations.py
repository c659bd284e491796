"""That each bug is found is shown by tests/unit/sanity/checks/dra."""

from devlet.testing import faulty_dra_registrations


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in faulty_dra_registrations.BUGS}
    assert kinds == {"AGAIN", "REG"}
    assert len(set(faulty_dra_registrations.BUGS.values())) == len(faulty_dra_registrations.BUGS)
