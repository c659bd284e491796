"""That each bug is found is shown by tests/unit/sanity/checks."""

from devlet.testing import faulty_registrations


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in faulty_registrations.BUGS}
    assert kinds == {"WATCH", "REG", "AGAIN"}
    assert len(set(faulty_registrations.BUGS.values())) == len(faulty_registrations.BUGS)
