"""The command line of the faulty driver. That each bug is found is tested by tests/unit/sanity/checks/dra."""

import pytest

from tests.support.mutants.faulty_dra_driver import BUGS, main
from tests.support.mutants.sound_dra_driver import SoundDraDriver


def test_each_check_has_its_own_bug() -> None:
    assert len(set(BUGS.values())) == len(BUGS)
    assert SoundDraDriver not in BUGS.values()


def test_every_bug_says_what_it_does_wrong() -> None:
    assert [name for name, bug in BUGS.items() if not bug.__doc__] == []


def test_an_unknown_bug_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    places = ["--root=/tmp", "--cdi=/tmp", "--kubeconfig=/tmp/k", "--node=n"]
    with pytest.raises(SystemExit):
        main([*places, "--bug", "DRA-NONE-1"])
    assert "invalid choice: 'DRA-NONE-1'" in capsys.readouterr().err
