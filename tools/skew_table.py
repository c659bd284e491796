"""Print the table of docs/compatibility.md that says what works in which release: `python -m tools.skew_table`.

It is generated from docs/runs/skew.json, which `make skew` writes. tests/docs/test_compatibility.py compares the
two.
"""

import ast
from collections.abc import Mapping

from tools.ci import PLANS, ROOT, Result, read_plan, read_record

PLAN = read_plan(PLANS / "skew.toml")
TESTS = ROOT / "tests" / "peers" / "test_skew.py"


def table(record: Mapping[str, Result]) -> str:
    """Return a row per test, in the order of the tests, and a column per release."""
    releases = [stage.name for stage in PLAN.stages]
    cells = {name: _cells(record[name]) for name in releases if name in record}
    features = list(dict.fromkeys(feature for each in reversed(list(cells.values())) for feature in each))
    lines = [_row("", *releases), _row(*["---"] * (len(releases) + 1))]
    lines += [_row(feature, *(_cell(cells.get(name), feature) for name in releases)) for feature in features]
    return "\n".join(lines)


def _cells(result: Result) -> dict[str, str]:
    """What the tests of one release recorded, by feature. A test without a result was skipped, or failed."""
    missing = "not in this release" if result.outcome == "passed" else "failed"
    order = [node.name for node in ast.parse(TESTS.read_text()).body if isinstance(node, ast.AsyncFunctionDef)]
    tests = {test.rpartition("::")[2].partition("[")[0]: each for test, each in result.properties.items()}
    known = [tests[name] for name in order if name in tests]
    return {each["feature"]: each.get("result", missing) for each in known if "feature" in each}


def _cell(cells: Mapping[str, str] | None, feature: str) -> str:
    return "not tested" if cells is None else cells.get(feature, "not tested")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(table(read_record(PLAN.record)))
