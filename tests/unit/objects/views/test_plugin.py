from datetime import UTC, datetime

from devlet.objects.views.plugin import PLUGINS

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SINCE = "2026-01-02T03:04:00Z"


def test_a_plugin_shows_its_process_in_wide_tables_only() -> None:
    options = {"preStartRequired": True, "getPreferredAllocationAvailable": True}
    spec = {"resource": "a.com/gpu", "socket": "/p/g.sock", "api": "v1beta1", "options": options}
    status = {"state": "Connected", "since": SINCE, "healthy": 2, "unhealthy": 1, "held": 1, "pid": 42}
    cells = PLUGINS.printer.cells({"spec": spec, "status": status}, NOW)
    shown = [cell for cell, column in zip(cells, PLUGINS.printer.columns, strict=True) if not column.priority]
    assert shown == ["a.com/gpu", "/p/g.sock", "v1beta1", "Connected", 2, 1, 1, "5s"]
    assert cells[8:] == ["42", "PreStart,PreferredAllocation", "<none>"]


def test_an_awaited_plugin_has_no_socket() -> None:
    cells = PLUGINS.printer.cells(
        {"spec": {"resource": "a.com/gpu"}, "status": {"state": "Awaited", "since": SINCE}}, NOW
    )
    assert cells[:4] == ["a.com/gpu", "<none>", "<none>", "Awaited"]
