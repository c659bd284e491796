"""The command line of the faulty plugin. That each bug is found is tested by tests/unit/sanity/checks."""

import pytest

from tests.support.mutants.faulty_device_plugin import BUGS, main
from tests.support.mutants.sound_device_plugin import SoundDevicePlugin


def test_each_check_has_its_own_bug() -> None:
    assert len(set(BUGS.values())) == len(BUGS)
    assert SoundDevicePlugin not in BUGS.values()


def test_every_bug_says_what_it_does_wrong() -> None:
    assert [name for name, bug in BUGS.items() if not bug.__doc__] == []


def test_an_unknown_bug_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--directory", "/tmp", "--cdi", "/tmp", "--bug", "DP-NONE-1"])
    assert "invalid choice: 'DP-NONE-1'" in capsys.readouterr().err
