from datetime import UTC, datetime
from typing import Any

from devlet.cli.views.slice import Holder
from devlet.cli.views.slice_row import COLUMNS, cells

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SLICE: dict[str, Any] = {
    "metadata": {"name": "s", "creationTimestamp": "2026-01-02T03:04:00Z"},
    "spec": {
        "driver": "a",
        "nodeName": "n",
        "pool": {"name": "p", "generation": 7},
        "devices": [{"name": "d0"}, {"name": "d1"}, {"name": "d2"}],
    },
}


def test_devices_in_use_are_counted_once_however_many_share_them() -> None:
    held = {("a", "p", "d0"): [Holder("x/c", []), Holder("x/d", [])], ("a", "other", "d1"): [Holder("x/e", [])]}
    assert cells(SLICE, held, now=NOW) == ["s", "n", "a", "p", "7", "3", "1", "5s", "x/c,x/d"]
    assert len(COLUMNS) == 9


def test_who_uses_them_may_be_unknown() -> None:
    assert cells(SLICE, None, now=NOW)[6:] == ["<unknown>", "5s", "<unknown>"]
    assert cells(SLICE, {}, now=NOW)[6:] == ["0", "5s", "<none>"]
