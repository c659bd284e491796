"""Every item of docs/contributing/conformance.md is asserted by a test, and every test names an item that exists."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


def listed() -> list[str]:
    page = (ROOT / "docs" / "contributing" / "conformance.md").read_text()
    return re.findall(r"^\| ([A-Z]{2}-\S+) \|", page, re.MULTILINE)


@cache
def marked() -> set[str]:
    sources = (path.read_text() for path in sorted((ROOT / "tests").rglob("*.py")))
    return {name for source in sources if "mark.spec(" in source for name in ids(source)}


def ids(source: str) -> Iterator[str]:
    """Yield the arguments of every `pytest.mark.spec(…)`."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="mark"), attr="spec"), args=args):
                yield from (str(arg.value) for arg in args if isinstance(arg, ast.Constant))


def test_no_item_is_listed_twice() -> None:
    assert [name for name, count in Counter(listed()).items() if count > 1] == []


def test_every_item_is_asserted_by_a_test() -> None:
    assert sorted(set(listed()) - marked()) == []


def test_every_mark_names_an_item() -> None:
    assert sorted(marked() - set(listed())) == []


def test_marks_are_found_in_decorators_and_in_parameters() -> None:
    source = (
        'import pytest\n@pytest.mark.spec("A-1")\n@pytest.mark.other("B-2")\ndef test() -> None: ...\n'
        'case = pytest.param(1, marks=pytest.mark.spec("C-3"))\npytestmark = [pytest.mark.spec("D-4")]\n'
    )
    assert sorted(ids(source)) == ["A-1", "C-3", "D-4"]
