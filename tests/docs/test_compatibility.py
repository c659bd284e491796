"""docs/compatibility.md shows the list of differences that the acceptance suite asserts on both servers."""

import ast
import re
import tomllib
from pathlib import Path

from tools import skew_table
from tools.ci import read_record

ROOT = Path(__file__).parents[2]
SUITE = ROOT / "tests" / "peers" / "acceptance"
PAGE = (ROOT / "docs" / "compatibility.md").read_text()
ENTRIES: list[dict[str, str]] = tomllib.loads((SUITE / "differences.toml").read_text())["difference"]


def row(entry: dict[str, str]) -> str:
    reference, embedded = shown(entry["reference"], entry["embedded"])
    return f"| {entry['when']} | {reference} | {embedded} | {entry['why']} |"


def shown(reference: str, embedded: str) -> tuple[str, str]:
    """Return both cells, with pipes escaped. Long lists show only the names that the other side lacks."""
    ours, theirs = embedded.split(), reference.split()
    if len(theirs) > 20:
        more, own = missing(theirs, ours), missing(ours, theirs)
        reference, embedded = f"also {more}", f"not these, but {own}" if own else "not these"
    return reference.replace("|", "\\|"), embedded.replace("|", "\\|")


def missing(names: list[str], others: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names if name not in others)


def constants(source: str) -> set[str]:
    return {
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_an_entry_says_when_what_and_why() -> None:
    assert [entry for entry in ENTRIES if set(entry) != {"when", "reference", "embedded", "why"}] == []
    assert [entry["when"] for entry in ENTRIES if entry["reference"] == entry["embedded"]] == []


def test_no_condition_is_listed_twice() -> None:
    conditions = [entry["when"] for entry in ENTRIES]
    assert sorted(conditions) == sorted(set(conditions))


def test_every_entry_is_observed_by_a_test() -> None:
    written = {text for path in SUITE.glob("test_*.py") for text in constants(path.read_text())}
    assert [entry["when"] for entry in ENTRIES if entry["when"] not in written] == []


def test_the_page_shows_every_entry_and_no_other() -> None:
    _, _, table = PAGE.partition("\n|---|---|---|---|\n")
    assert table.splitlines() == [row(entry) for entry in ENTRIES]


def test_the_table_of_releases_is_what_make_skew_recorded() -> None:
    assert f"\n\n{skew_table.table(read_record(skew_table.PLAN.record))}\n\n" in PAGE


def test_every_item_of_the_checklist_is_in_the_suite() -> None:
    """Items 1 to 81. The later ones run other programs and have separate tests."""
    sources = "\n".join(path.read_text() for path in SUITE.glob("test_*.py"))
    asserted = {int(number) for number in re.findall(r'spec\("KA-10\.(\d+)"\)', sources)}
    assert sorted(set(range(1, 82)) - asserted) == []
