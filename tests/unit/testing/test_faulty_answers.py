"""That each bug is found is shown by tests/unit/sanity/checks."""

from devlet.testing import faulty_answers


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in faulty_answers.BUGS}
    assert kinds == {"ALLOC", "PRE", "PREF", "OPT"}
    assert len(set(faulty_answers.BUGS.values())) == len(faulty_answers.BUGS)
