"""docs/sanity.md lists the checks that exist, and docs/sanity-findings.md names no other."""

import re
from pathlib import Path
from typing import Any

from devlet.sanity.check import Check
from devlet.sanity.checks.device_plugin import ALL
from devlet.sanity.checks.dra import ALL as DRA
from devlet.sanity.sources import PRACTICE

DOCS = Path(__file__).parents[2] / "docs"
SANITY = (DOCS / "sanity.md").read_text()


def test_the_listed_checks_of_device_plugins_are_those_that_are_run() -> None:
    section = SANITY.partition("## The checks of device plugins")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| DP-")]
    assert rows == [_row(check) for check in ALL]


def test_the_listed_checks_of_dra_drivers_are_those_that_are_run() -> None:
    section = SANITY.partition("## The checks of DRA drivers")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| DRA-")]
    assert rows == [_row(check) for check in DRA]


def _row(check: Check[Any]) -> str:
    return f"| {check.id} | {check.title} | {check.rule} | {check.source.name} |"


def test_where_each_rule_is_from_can_be_looked_up() -> None:
    section = SANITY.partition("## Where the rules are from")[2].partition("\n## ")[0]
    linked = dict(re.findall(r"^\| \[(.+?)\]\((.+?)\) \|", section, re.MULTILINE))
    cited = {check.source for check in ALL} | {check.source for check in DRA}
    assert linked == {source.name: source.url for source in cited - {PRACTICE}}
    assert f"{PRACTICE.name}:" in section


def test_the_findings_are_of_checks_that_exist() -> None:
    named = set(re.findall(r"(?:DP|DRA)-[A-Z]+-\d+", (DOCS / "sanity-findings.md").read_text()))
    assert named and named <= {check.id for check in ALL} | {check.id for check in DRA}
