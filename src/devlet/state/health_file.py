"""The file with the health of the devices of claims, `dra_health_state`. It has no checksum; losing it costs little.

Times have microseconds here, but nanoseconds in files of a kubelet, which are truncated.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from devlet.errors import InvalidInput, StateCorrupt
from devlet.objects.values.timestamps import format_micro_time, parse_micro_time
from devlet.state import go_json
from devlet.state.go_json import Malformed

MAX_BYTES = 64 << 20

HEALTHY, UNHEALTHY, UNKNOWN = "Healthy", "Unhealthy", "Unknown"
_NEVER = datetime(1, 1, 1, tzinfo=UTC)
_NANOSECONDS = 10**9


class DeviceHealth(Struct, frozen=True):
    """The last report about a device. `timeout` is how many seconds it is valid; 0 means the default."""

    pool: str
    device: str
    health: str
    updated: datetime
    timeout: float = 0.0
    message: str = ""


def decode(blob: bytes) -> dict[str, tuple[DeviceHealth, ...]]:
    """Return the devices by driver. StateCorrupt says what is wrong, without naming the file."""
    try:
        if len(blob) > MAX_BYTES:
            raise Malformed(f"it has {len(blob)} bytes, more than {MAX_BYTES}")
        return {
            go_json.valid(driver): _state(value, driver) for driver, value in go_json.pairs(go_json.parse(blob)) or ()
        }
    except Malformed as e:
        raise StateCorrupt(f"the health of devices cannot be read: {e}") from e


def _state(value: Any, driver: str) -> tuple[DeviceHealth, ...]:
    found: dict[str, DeviceHealth] = {}
    with go_json.inside(driver):
        for name, member in go_json.members(value):
            if name == "devices":
                found |= {key: read_device(device) for key, device in go_json.pairs(member) or ()}
    return tuple(found.values())


_NAMES = {
    name.lower(): name for name in ("PoolName", "DeviceName", "Health", "LastUpdated", "HealthCheckTimeout", "Message")
}


def read_device(value: Any) -> DeviceHealth:
    """Decode one device from parsed JSON. Raise Malformed if it is not one."""
    texts = dict.fromkeys(("poolname", "devicename", "health", "message"), "")
    updated, timeout = _NEVER, 0
    for name, member in go_json.members(value):
        with go_json.inside(_NAMES.get(name, name)):
            if name in texts:
                texts[name] = go_json.string(member, texts[name])
            elif name == "lastupdated":
                updated = _time(member, updated)
            elif name == "healthchecktimeout":
                timeout = go_json.signed(member, timeout)
    health = texts["health"] if texts["health"] in (HEALTHY, UNHEALTHY) else UNKNOWN
    pool, device, message = texts["poolname"], texts["devicename"], texts["message"]
    return DeviceHealth(pool, device, health, updated, timeout / _NANOSECONDS, message)


def _time(value: Any, before: datetime) -> datetime:
    if value is None:
        return before
    try:
        return parse_micro_time(go_json.string(value))
    except InvalidInput as e:
        raise Malformed(str(e)) from e


def encode(health: Mapping[str, Sequence[DeviceHealth]]) -> bytes:
    """Encode like the kubelet: sorted by driver, pool and device."""
    return go_json.dump({driver: {"Devices": _devices(health[driver])} for driver in sorted(health)})


def _devices(devices: Sequence[DeviceHealth]) -> dict[str, Any]:
    by_key = {f"{device.pool}/{device.device}": device for device in devices}
    return {key: _written(by_key[key]) for key in sorted(by_key)}


def _written(device: DeviceHealth) -> dict[str, Any]:
    return {
        "PoolName": device.pool,
        "DeviceName": device.device,
        "Health": device.health,
        "LastUpdated": _without_zeros(format_micro_time(device.updated)),
        "HealthCheckTimeout": round(device.timeout * _NANOSECONDS),
        "Message": device.message,
    }


def _without_zeros(time: str) -> str:
    return time.removesuffix("Z").rstrip("0").removesuffix(".") + "Z" if "." in time else time
