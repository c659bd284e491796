from datetime import UTC, datetime

from devlet.objects.views.prepared_claim import PREPARED_CLAIMS

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SINCE = "2026-01-02T03:04:00Z"


def test_a_prepared_claim_shows_devices_and_pods() -> None:
    devices = [{"pool": "n1", "device": f"gpu-{i}"} for i in range(10)]
    drivers = [{"driver": "a.com", "prepared": True, "devices": devices}, {"driver": "b.com", "prepared": False}]
    pods, waiting = [{"name": "train", "uid": "u1"}, {"uid": "u2"}], [{"pod": "web", "uid": "u3"}]
    status = {"state": "Failed", "since": SINCE, "message": "hot", "drivers": drivers, "pods": pods, "waiting": waiting}
    cells = PREPARED_CLAIMS.printer.cells({"metadata": {"name": "c"}, "spec": {"uid": "u"}, "status": status}, NOW)
    some = ",".join(f"gpu-{i}" for i in range(8))
    expected = ["c", "Failed", "a.com,b.com", f"{some} + 2 more...", "train,u2", "web", "5s", "u", "hot"]
    assert cells == expected
    assert len(PREPARED_CLAIMS.printer.columns) == len(cells)
