"""docs/sanity.md lists the checks that exist, and docs/sanity-findings.md names no other."""

import re
from pathlib import Path

from devlet.sanity.checks.device_plugin import ALL
from devlet.sanity.checks.dra import ALL as DRA

DOCS = Path(__file__).parents[2] / "docs"
SANITY = (DOCS / "sanity.md").read_text()


def test_the_listed_checks_of_device_plugins_are_those_that_are_run() -> None:
    section = SANITY.partition("## The checks of device plugins")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| DP-")]
    assert rows == [f"| {check.id} | {check.title} | {check.rule} |" for check in ALL]


def test_the_listed_checks_of_dra_drivers_are_those_that_are_run() -> None:
    section = SANITY.partition("## The checks of DRA drivers")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| DRA-")]
    assert rows == [f"| {check.id} | {check.title} | {check.rule} |" for check in DRA]


def test_the_findings_are_of_checks_that_exist() -> None:
    named = set(re.findall(r"(?:DP|DRA)-[A-Z]+-\d+", (DOCS / "sanity-findings.md").read_text()))
    assert named and named <= {check.id for check in ALL} | {check.id for check in DRA}
