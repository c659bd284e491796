"""The pages of the project name only what exists: files, headings, commands of the Makefile, packages."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
COMMANDS = ["demo", "test", "check", "peers", "test-peers", "bench"]


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_link_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://|mailto:|#)([^)#\s]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_link_to_a_heading_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://|mailto:)([^)#\s]*)#([^)\s]+)\)", page.read_text())
    assert [(link, title) for link, title in links if title not in anchors(page.parent / link if link else page)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_make_command_on_a_page_is_a_target(page: Path) -> None:
    named = set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", page.read_text(), re.MULTILINE))
    assert named - targets() == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_make_command_is_explained_to_contributors(command: str) -> None:
    assert command in targets()
    assert f"`make {command}" in (ROOT / "CONTRIBUTING.md").read_text()


def test_the_architecture_page_lists_the_layers_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    page = (ROOT / "docs" / "architecture.md").read_text().splitlines()
    start = page.index(layers[0])
    assert page[start : start + len(layers)] == layers


def test_every_package_is_on_the_architecture_page() -> None:
    packages = {init.parent.name for init in (ROOT / "src" / "devlet").glob("*/__init__.py")}
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert {name for name in packages if not re.search(rf"^  {name}/ ", page, re.MULTILINE)} == set()


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    texts = [*project["project"]["dependencies"], *groups["build"], *(t for t in groups["dev"] if isinstance(t, str))]
    names = {match[0] for text in texts if (match := re.match(r"[A-Za-z0-9-]+", text))}
    page = (ROOT / "docs" / "contributing" / "dependencies.md").read_text()
    assert {name for name in names if f"`{name}`" not in page} == set()
