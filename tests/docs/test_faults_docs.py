"""The examples about faults: files of a project, which pass."""

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


def test_every_example_is_a_file_that_is_run() -> None:
    assert PAGE.count("```python") == len(FILES) >= 5
    assert all(name.startswith("test_") for name in FILES)


def test_every_fault_is_in_the_table() -> None:
    told = set(re.findall(r"^\| `(\w+)\(method", PAGE, re.MULTILINE))
    assert told == {"delay", "hang", "drop", "error", "corrupt", "disconnect", "reorder", "duplicate"}
    assert all(callable(getattr(Faults, name)) for name in told)
    assert all(f"`{moment.name}`" in PAGE or f"`Moment.{moment.name}`" in PAGE for moment in Moment)


def test_every_option_is_in_the_table() -> None:
    assert set(re.findall(r"^\| `(\w+)=", PAGE, re.MULTILINE)) == set(Occasion.__annotations__)


def test_what_a_call_has_is_what_the_page_says() -> None:
    assert all(name in Call.__slots__ for name in ("path", "requests", "answers", "status", "faults"))


def test_the_strategies_that_are_named_are_there() -> None:
    part = PAGE[PAGE.index("## Objects by chance") :].split("```", 1)[0]
    named = set(re.findall(r"`(\w+)`", part))
    assert len(named) > 8 and named <= set(strategies.__all__)
