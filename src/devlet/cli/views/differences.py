"""The differences that `devlet drift` finds, as a table."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from devlet.cassettes.drift import Change, Difference
from devlet.cli.views.sheet import NONE, table

_WIDTH: Final = 60


def lines(found: Sequence[Difference]) -> Iterator[str]:
    if not found:
        yield "no differences"
        return
    rows = [_row(each) for each in found]
    yield from table(["CHANGE", "OBJECT", "FIELD", "A", "B"], rows)
    counts = Counter(each.change for each in found)
    yield ", ".join(f"{counts[change]} {change}" for change in Change if counts[change])


def _row(difference: Difference) -> list[str]:
    return [difference.change, difference.object, difference.field, _text(difference.before), _text(difference.after)]


def _text(value: Any) -> str:
    """Return a value as text. An object with one field is shown without its name: `{"string": "a100"}` as a100."""
    if value is None:
        return NONE
    if isinstance(value, dict) and len(value) == 1 and not isinstance(inner := next(iter(value.values())), dict):
        value = inner
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
