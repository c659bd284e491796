"""That each bug is found is shown by tests/unit/sanity/checks."""

import pytest

from tests.support.mutants.faulty_device_plugin import BUGS, main
from tests.support.mutants.sound_device_plugin import SoundDevicePlugin


def test_each_bug_is_a_bug_of_its_own() -> None:
    assert len(set(BUGS.values())) == len(BUGS)
    assert SoundDevicePlugin not in BUGS.values()


def test_a_bug_that_nobody_knows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--directory", "/tmp", "--cdi", "/tmp", "--bug", "DP-NONE-1"])
    assert "invalid choice: 'DP-NONE-1'" in capsys.readouterr().err
