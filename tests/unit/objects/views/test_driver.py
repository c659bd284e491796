from datetime import UTC, datetime

from devlet.objects.views.driver import DRIVERS

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SINCE = "2026-01-02T03:04:00Z"


def test_a_driver_shows_its_endpoint_and_message_in_wide_tables_only() -> None:
    spec = {"driver": "a.com", "endpoint": "/p/dra.sock", "service": "v1", "healthService": "v1.DRAResourceHealth"}
    counts = {"slices": 1, "devices": 8, "claims": 0, "pods": 2}
    status = {"state": "Disconnected", "since": SINCE, "wipeAt": "2026-01-02T03:04:35Z", "message": "gone"} | counts
    cells = DRIVERS.printer.cells({"metadata": {"name": "a.com"}, "spec": spec, "status": status}, NOW)
    shown = [cell for cell, column in zip(cells, DRIVERS.printer.columns, strict=True) if not column.priority]
    assert shown == ["a.com", "Disconnected", "v1", "1", "8", "0", "2", "in 30s", "5s"]
    assert cells[9:] == ["/p/dra.sock", "v1.DRAResourceHealth", "gone"]


def test_a_driver_that_is_missing_has_little_to_show() -> None:
    cells = DRIVERS.printer.cells({"metadata": {"name": "a.com"}, "status": {"state": "Missing", "claims": 1}}, NOW)
    assert cells[1:9] == ["Missing", "<none>", "<none>", "<none>", "1", "<none>", "<none>", "<unknown>"]


def test_slices_whose_time_is_over_are_wiped_now() -> None:
    assert DRIVERS.printer.cells({"status": {"wipeAt": SINCE}}, NOW)[7] == "in 0s"
