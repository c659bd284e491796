"""The examples of docs/faults.md pass as the files of a project, and its tables are complete."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from devlet.testing import strategies
from devlet.testing.grpc_faults import Call, Faults, Moment, Occasion

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "faults.md").read_text()
FILES: dict[str, str] = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL))


@pytest.mark.long
def test_the_examples_pass(passed: Callable[[dict[str, str]], str]) -> None:
    assert f"{PAGE.count('def test_')} passed" in passed(FILES)


def test_every_example_is_run() -> None:
    assert PAGE.count("```python") == len(FILES) >= 5
    assert all(name.startswith("test_") for name in FILES)


def test_every_fault_is_in_the_table() -> None:
    named = set(re.findall(r"^\| `(\w+)\(method", PAGE, re.MULTILINE))
    assert named == {"delay", "hang", "drop", "error", "corrupt", "disconnect", "reorder", "duplicate"}
    assert all(callable(getattr(Faults, name)) for name in named)
    assert all(f"`{moment.name}`" in PAGE or f"`Moment.{moment.name}`" in PAGE for moment in Moment)


def test_every_option_is_in_the_table() -> None:
    assert set(re.findall(r"^\| `(\w+)=", PAGE, re.MULTILINE)) == set(Occasion.__annotations__)


def test_a_call_has_the_attributes_on_the_page() -> None:
    assert all(name in Call.__slots__ for name in ("path", "requests", "answers", "status", "faults"))


def test_the_strategies_on_the_page_exist() -> None:
    part = PAGE[PAGE.index("## Random objects") :].split("```", 1)[0]
    named = set(re.findall(r"`(\w+)`", part))
    assert len(named) > 8 and named <= set(strategies.__all__)
