from datetime import UTC, datetime

from devlet.cli.views.health_state import document, table
from devlet.state.health_file import DeviceHealth

NOON = datetime(2026, 1, 2, 12, 0, 0, 250_000, UTC)
HEALTH = {
    "nic.io": (),
    "gpu.io": (
        DeviceHealth("pool", "gpu-1", "Unhealthy", NOON, 90.5, "too hot"),
        DeviceHealth("pool", "gpu-0", "Healthy", NOON),
    ),
}


def cells(lines: list[str]) -> list[list[str]]:
    """No cell here has two spaces side by side."""
    return [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in lines]


def test_each_device_and_each_driver_without_devices_has_a_row() -> None:
    assert cells(list(table(HEALTH))) == [
        ["DRIVER", "POOL", "DEVICE", "HEALTH", "SINCE", "TIMEOUT", "MESSAGE"],
        ["gpu.io", "pool", "gpu-0", "Healthy", "2026-01-02T12:00:00Z", "default", "<none>"],
        ["gpu.io", "pool", "gpu-1", "Unhealthy", "2026-01-02T12:00:00Z", "90.5s", "too hot"],
        ["nic.io", *["<none>"] * 6],
    ]


def test_a_file_with_nothing_in_it_says_so() -> None:
    assert list(table({})) == ["No device health is recorded."]


def test_what_would_act_on_a_terminal_is_shown_instead() -> None:
    lines = "\n".join(table({"d": (DeviceHealth("p", "d", "Healthy", NOON, message="a\x1b[2J\nb"),)}))
    assert "\x1b" not in lines
    assert "^[" in lines
    assert len(lines.splitlines()) == 2


def test_a_document_has_everything() -> None:
    told = {"lastUpdated": "2026-01-02T12:00:00.250000Z"}
    assert document(HEALTH) == {
        "drivers": {
            "gpu.io": [
                {"poolName": "pool", "deviceName": "gpu-0", "health": "Healthy"}
                | told
                | {"healthCheckTimeoutSeconds": 0, "message": ""},
                {"poolName": "pool", "deviceName": "gpu-1", "health": "Unhealthy"}
                | told
                | {"healthCheckTimeoutSeconds": 90.5, "message": "too hot"},
            ],
            "nic.io": [],
        }
    }
    assert document({}) == {"drivers": {}}
