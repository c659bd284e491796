"""That each bug is found is shown by tests/unit/sanity/checks."""

from tests.support.mutants import answers


def test_its_bugs_are_those_of_its_checks() -> None:
    kinds = {id.split("-")[1] for id in answers.BUGS}
    assert kinds == {"ALLOC", "PRE", "PREF", "OPT"}
    assert len(set(answers.BUGS.values())) == len(answers.BUGS)
