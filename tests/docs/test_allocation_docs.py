"""The examples of docs/allocation.md print what the page says, and its lists of differences are those of the code."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from devlet.alloc import Features, Rules
from devlet.alloc.placement import MODES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "allocation.md").read_text()
CODE = (ROOT / "src" / "devlet" / "alloc" / "features.py").read_text()


def steps() -> list[tuple[str, str]]:
    """Return each command with its expected output."""
    blocks = "".join(re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL))
    return [(first, rest) for first, _, rest in (part.partition("\n") for part in re.split(r"(?m)^\$ ", blocks)[1:])]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in re.findall(r"```yaml\n# (\S+)\n(.*?)```", PAGE, re.DOTALL):
        (tmp_path / name).write_text(content)
    return tmp_path


@pytest.mark.parametrize(("command", "expected"), steps(), ids=[command for command, _ in steps()])
def test_an_example_prints_what_the_page_says(command: str, expected: str, folder: Path) -> None:
    environ = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "NO_COLOR": "1"}
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environ, capture_output=True, text=True, timeout=120)
    assert done.stdout == expected, done.stderr
    assert done.returncode == 0


def test_every_rule_is_listed_with_the_number_that_the_code_gives_it() -> None:
    listed = re.findall(r"^\| (\d+) \| `(\w+)` \|", PAGE, re.MULTILINE)
    assert [name for _, name in listed] == [field.name for field in fields(Rules)]
    assert listed == [
        (number, name) for name, number in re.findall(r"^    (\w+): bool = True  # (\d+): ", CODE, re.MULTILINE)
    ]


def test_every_mode_is_described() -> None:
    (row,) = re.findall(r"^\| `mode` \| (.*) \|$", PAGE, re.MULTILINE)
    assert set(re.findall(r"`([\w-]+)`:", row)) == set(MODES)


def test_the_feature_on_the_page_exists() -> None:
    (row,) = re.findall(r"^\| `features` \| (.*) \|$", PAGE, re.MULTILINE)
    named = re.findall(r'"-(\w+)"', row)
    assert named and set(named) <= set(Features.names())
