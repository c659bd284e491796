"""docs/architecture.md names files that exist, and its journeys stay short."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "devlet"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
_NAME = re.compile(r"(?:[\w.-]+/)+[\w.-]+")


def named() -> set[str]:
    """Return the paths in code on the page: files, and modules such as `kit/upkeep`."""
    prose, drawings = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL), re.findall(r"```\n(.*?)```", PAGE, re.DOTALL)
    in_prose = {name for code in re.findall(r"`([^`]+)`", prose) for name in _NAME.findall(code)}
    packages = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    in_drawings = {name for drawing in drawings for name in _NAME.findall(drawing)}
    return in_prose | {name for name in in_drawings if name.partition("/")[0] in packages}


def exists(name: str) -> bool:
    return any((folder / name).exists() or (folder / f"{name}.py").exists() for folder in (ROOT, PACKAGE))


def journeys() -> list[tuple[str, int, list[str]]]:
    """Return the title of each journey, the number of files that it announces, and its files."""
    section = PAGE.partition("\n## Journeys\n")[2].partition("\n## ")[0]
    found = re.findall(r"^### (.*)\n\n(\d+) files\.\n\n((?:\|.*\n)+)", section, re.MULTILINE)
    return [
        (title, int(count), re.findall(r"^\| \d+ \| `(.*?)` \|", table, re.MULTILINE)) for title, count, table in found
    ]


def test_every_file_and_module_on_the_page_exists() -> None:
    outside = {"devlet.sock", "DIR/devlet.sock"}
    names = named() - outside
    assert len(names) > 80
    assert sorted(name for name in names if not exists(name)) == []


@pytest.mark.parametrize(("journey", "most"), [(0, 25), (1, 30), (2, 20)], ids=["device", "claim", "apply"])
def test_a_journey_is_short(journey: int, most: int) -> None:
    _, announced, files = journeys()[journey]
    assert len(files) == len(set(files)) == announced <= most
    assert [name for name in files if not (PACKAGE / name).is_file()] == []


def test_there_are_three_journeys() -> None:
    assert len(journeys()) == 3
