"""test_driver_project looks at what is in a project, and runs the commands that are printed."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from devlet.cli import driver, main


def test_a_new_project_is_created_in_the_current_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    assert main.run(["driver", "new", "led.vendor.com"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Created a project for the DRA driver led.vendor.com in led:"
    assert "  src/led_driver/driver.py" in lines
    assert [line.split()[0] for line in lines[lines.index("Install it and run its tests:") + 1 :]] == [
        *("cd", driver._python(), ".", "pip", "pytest")
    ]
    assert 'name = "led.vendor.com"' in (root / "led/src/led_driver/driver.py").read_text()


def test_a_device_plugin_is_created_in_the_given_directory(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["driver", "new", "led", "--kind", "device-plugin", "--directory", str(root / "a/b")]
    assert main.run(arguments) == 0
    assert "device plugin for example.com/led in " in capsys.readouterr().out
    assert 'resource = "example.com/led"' in (root / "a/b/src/led_driver/driver.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["../led"], "'../led' is a path"),
        (["Led"], "invalid driver name 'Led'"),
        (["led", "--kind", "csi"], "'csi' is not one of 'dra', 'device-plugin'"),
        (["led", "--directory", "."], ". already exists"),
        ([], "Missing argument 'NAME'"),
    ],
)
def test_invalid_arguments_are_refused_in_a_sentence(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["driver", "new", *arguments]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ") and expected in said


def test_without_a_verb_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["driver"]) == 0
    assert "devlet driver new led" in capsys.readouterr().out


class Distribution:
    def __init__(self, recorded: Mapping[str, Any] | None) -> None:
        self._recorded = recorded

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return json.dumps(self._recorded) if self._recorded is not None else None


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        (None, []),
        ({"url": "file:///no/such/checkout", "dir_info": {}}, []),
        ({"url": "file:///usr/bin/en%76", "archive_info": {}}, ["/usr/bin/env"]),
        ({"url": "https://h/d.whl", "archive_info": {}}, ["devlet @ https://h/d.whl"]),
        (
            {"url": "https://h/devlet", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            ["devlet @ git+https://h/devlet@abc"],
        ),
    ],
)
def test_devlet_is_installed_from_where_it_came(
    recorded: Mapping[str, Any] | None, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "distribution", lambda _: Distribution(recorded))
    assert driver._source() == expected


def test_python3_is_named_by_its_path_only_if_it_is_another_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(root))
    assert driver._python() == sys.executable
    (root / "python3").symlink_to(sys.executable)
    assert driver._python() == "python3"
