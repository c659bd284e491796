"""The examples of docs/testing.md pass as the files of a project, and its tables are complete."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from devlet import testing
from devlet.testing.driver_runner import Paths
from devlet.testing.node_places import NodePlaces
from devlet.testing.sync_node import SyncNode, node_thread

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
FILES: dict[str, str] = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL))


@pytest.mark.long
def test_the_examples_pass(passed: Callable[[dict[str, str]], str]) -> None:
    assert f"{PAGE.count('def test_')} passed" in passed(FILES)


def test_the_failure_on_the_page_is_the_real_one() -> None:
    (shown,) = re.findall(r"```text\nAssertionError: (.*?)\n```", PAGE, re.DOTALL)
    with node_thread() as thread, SyncNode.start(thread) as node:
        node.create_class()
        node.create_claim("light")
        node.create_pod("lamp", claim="light")
        node.until_event("FailedScheduling")
        with pytest.raises(AssertionError) as caught:
            node.until_running("lamp", within=0.2)
    assert str(caught.value).replace("0.2 s", "60 s") == shown


def test_every_example_is_run() -> None:
    assert PAGE.count("```python") == len(FILES) > 5
    assert all(name.startswith("test_") or f'"{name}"' in "".join(FILES.values()) for name in FILES)


def test_every_method_in_the_table_exists() -> None:
    table = PAGE.split("## Looking inside")[1].split("\n## ")[0]
    named = set(re.findall(r"`(\w+)(?:\(.*?\))?`", table))
    assert len(named) > 10 and named <= {*dir(SyncNode), *NodePlaces.__annotations__}


def test_every_public_name_is_in_the_table() -> None:
    table = PAGE.split("## What can be imported")[1]
    rows = "".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))
    assert sorted(re.findall(r"`(\w+)`", rows)) == sorted(testing.__all__)


def test_all_variables_and_placeholders_of_a_driver_are_on_the_page() -> None:
    paths = Paths(*(["x"] + [Path("/x")] * 6))  # type: ignore[arg-type]
    assert [name for name in paths.environment() if f"`{name}`" not in PAGE] == []
    assert [name for name in inspect.signature(Paths).parameters if f"`{{{name}}}`" not in PAGE] == []
