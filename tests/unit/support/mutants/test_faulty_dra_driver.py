"""That each bug is found is shown by tests/unit/sanity/checks/dra."""

import pytest

from tests.support.mutants.faulty_dra_driver import BUGS, main
from tests.support.mutants.sound_dra_driver import SoundDraDriver


def test_each_bug_is_a_bug_of_its_own() -> None:
    assert len(set(BUGS.values())) == len(BUGS)
    assert SoundDraDriver not in BUGS.values()


def test_a_bug_that_nobody_knows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    places = ["--root=/tmp", "--cdi=/tmp", "--kubeconfig=/tmp/k", "--node=n"]
    with pytest.raises(SystemExit):
        main([*places, "--bug", "DRA-NONE-1"])
    assert "invalid choice: 'DRA-NONE-1'" in capsys.readouterr().err
