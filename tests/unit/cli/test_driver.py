"""What is in a project is looked at in test_driver_project."""

from pathlib import Path

import pytest

from devlet.cli import main


def test_a_new_project_is_made_below_where_one_is(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    assert main.run(["driver", "new", "led.vendor.com"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "led has a project for the DRA driver led.vendor.com:"
    assert "  src/led_driver/driver.py" in lines and lines[-1].startswith("Next: cd led && ")
    assert 'name = "led.vendor.com"' in (root / "led/src/led_driver/driver.py").read_text()


def test_a_device_plugin_is_made_where_it_is_wanted(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["driver", "new", "led", "--kind", "device-plugin", "--directory", str(root / "a/b")]
    assert main.run(arguments) == 0
    assert "device plugin of example.com/led:" in capsys.readouterr().out
    assert 'resource = "example.com/led"' in (root / "a/b/src/led_driver/driver.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["../led"], "'../led' is a path"),
        (["Led"], "'Led' cannot be the name of a driver"),
        (["led", "--kind", "csi"], "'csi' is not one of 'dra', 'device-plugin'"),
        (["led", "--directory", "."], ". is there already"),
        ([], "Missing argument 'NAME'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["driver", "new", *arguments]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ") and told in said


def test_without_a_verb_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["driver"]) == 0
    assert "devlet driver new led" in capsys.readouterr().out
