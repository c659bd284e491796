"""docs/views.md has the same columns and fields as the views."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from devlet.objects.documents import Document
from devlet.objects.views import VIEWS
from devlet.objects.views.description import View

PAGE = (Path(__file__).parents[2] / "docs" / "views.md").read_text()


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def columns(view: View[Any, Any]) -> str:
    rows = [(each.title.upper(), "`-o wide`" if each.wide else "", view.meaning_of(each)) for each in view.columns]
    return table(("column", "shown", "meaning"), rows)


def fields(view: View[Any, Any]) -> str:
    return table(("field", "type", "meaning"), list(below(view.schema, "")))


def below(schema: Document, path: str) -> Iterator[tuple[str, str, str]]:
    for name, field in schema.get("properties", {}).items():
        place = f"{path}{name}"
        is_list = field["type"] == "array"
        inner = field["items"] if is_list else field
        if path:
            type_ = "time" if inner.get("format") == "date-time" else inner["type"]
            yield f"`{place}`", f"list of {type_}" if is_list else type_, field["description"]
        yield from below(inner, f"{place}[]." if is_list else f"{place}.")


def section(view: View[Any, Any]) -> str:
    title = view.kind.kind
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"the page has no section {title}"
    return found[1]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.kind.kind)
def test_the_section_of_a_view_has_its_columns_and_its_fields(view: View[Any, Any]) -> None:
    tables = re.findall(r"(?:^\|.*\n)+", section(view), re.MULTILINE)
    assert tables == [columns(view), fields(view)]
