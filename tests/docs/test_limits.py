"""docs/limits.md has the same figures as the code."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}
ROWS = re.findall(r"^\| (.+?) \| ([0-9,]+)(?: (\w+))? \| .+ \| `([\w.]+)` \|$", PAGE.read_text(), re.MULTILINE)


def value_of(name: str) -> Any:
    """Return the value of a constant, or the default of a setting."""
    module, _, constant = name.rpartition(".")
    try:
        return getattr(import_module(module), constant)
    except ModuleNotFoundError:
        owner: type = value_of(module)
        return getattr(owner(), constant)


@pytest.mark.parametrize(("figure", "unit", "name"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_limit_on_the_page_is_the_one_in_the_code(figure: str, unit: str, name: str) -> None:
    assert value_of(name) == int(figure.replace(",", "")) * UNITS.get(unit, 1)


def test_every_row_of_the_page_is_compared() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if re.match(r"\| (?!what )", line)]
    assert len(rows) == len(ROWS) > 30


def test_no_limit_is_listed_twice() -> None:
    names = [row[3] for row in ROWS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["serve.kube_api.bodies", "kit.heavy_work", "kit.json_yaml", "cel.library.regex"])
def test_every_limit_of_these_modules_is_on_the_page(name: str) -> None:
    module = import_module(f"devlet.{name}")
    own = {constant for constant in vars(module) if re.match(r"(MAX|INLINE|AT_ONCE)", constant)}
    listed = {row[3].rpartition(".")[2] for row in ROWS}
    assert own - listed == set()
