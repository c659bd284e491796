"""The device health in a `dra_health_state` as a table for people, and as a JSON document for programs."""

from collections.abc import Iterator

from devlet.cli.session import Document
from devlet.cli.tables import Layout, cell_text
from devlet.objects.values.timestamps import format_micro_time, format_time
from devlet.state.health_file import DeviceHealth
from devlet.state.health_salvage import ByDriver

NONE = "<none>"
_HEADER = ["DRIVER", "POOL", "DEVICE", "HEALTH", "SINCE", "TIMEOUT", "MESSAGE"]


def table(found: ByDriver) -> Iterator[str]:
    """Yield a row for each device, and for each driver without devices."""
    if not found:
        yield "No device health is recorded."
        return
    rows = [row for driver in sorted(found) for row in _rows(driver, found[driver])]
    yield from Layout().lines([_HEADER, *([cell_text(cell or NONE) for cell in row] for row in rows)])


def _rows(driver: str, devices: tuple[DeviceHealth, ...]) -> Iterator[list[str]]:
    if not devices:
        yield [driver, *[""] * (len(_HEADER) - 1)]
    for each in _sorted(devices):
        status = [each.health, format_time(each.updated), _duration(each.timeout), each.message]
        yield [driver, each.pool, each.device, *status]


def _duration(seconds: float) -> str:
    return f"{seconds:.12g}s" if seconds > 0 else "default"


def _sorted(devices: tuple[DeviceHealth, ...]) -> list[DeviceHealth]:
    return sorted(devices, key=lambda each: (each.pool, each.device))


def document(found: ByDriver) -> Document:
    return {"drivers": {driver: [_device(each) for each in _sorted(found[driver])] for driver in sorted(found)}}


def _device(device: DeviceHealth) -> Document:
    """Return the device with the field names of the file, and seconds instead of nanoseconds."""
    return {
        "poolName": device.pool,
        "deviceName": device.device,
        "health": device.health,
        "lastUpdated": format_micro_time(device.updated),
        "healthCheckTimeoutSeconds": int(device.timeout) if device.timeout.is_integer() else device.timeout,
        "message": device.message,
    }
