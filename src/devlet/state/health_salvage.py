"""Recover the health of devices from a damaged `dra_health_state`: every complete device, with the driver before it."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from devlet.errors import StateCorrupt
from devlet.state import go_json, health_file
from devlet.state.go_json import Members
from devlet.state.health_file import MAX_BYTES, DeviceHealth
from devlet.state.json_pieces import scan

__all__ = ["ByDriver", "Salvage", "salvage"]

ByDriver = Mapping[str, tuple[DeviceHealth, ...]]

_DRIVER = re.compile(r'"((?:[^"\\]|\\.){0,253})"\s*:\s*\{\s*"Devices"\s*:\s*\{', re.IGNORECASE)
_DEVICE = re.compile(r'"((?:[^"\\]|\\.){0,507})"\s*:\s*\{\s*"PoolName"', re.IGNORECASE)
_KEY = re.compile(r'"((?:[^"\\]|\\.){0,507})"\s*:\s*$')
_BEFORE = 600  # characters in which the key of an object is searched
_NAMES = {"poolname", "devicename", "health"}


class Salvage(Struct, frozen=True):
    """`lost` has a line for everything that cannot be read."""

    drivers: ByDriver
    lost: tuple[str, ...] = ()


def salvage(blob: bytes) -> Salvage:
    try:
        return Salvage(health_file.decode(blob))
    except StateCorrupt:
        return _pieces(go_json.loose(blob[:MAX_BYTES]))


def _pieces(text: str) -> Salvage:
    """Collect the devices. A partly overwritten file may contain a device twice: the last one counts."""
    lost: list[str] = []
    found: dict[str, dict[tuple[str, str], DeviceHealth]] = {}
    for driver, section in _sections(text, lost):
        for device in _devices(driver, section, lost):
            found.setdefault(driver, {})[device.pool, device.device] = device
    return Salvage({driver: tuple(devices.values()) for driver, devices in found.items()}, tuple(lost))


def _sections(text: str, lost: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the part of each driver. The driver of devices before the first one is unknown."""
    heads = list(_DRIVER.finditer(text))
    before = text[: heads[0].start()] if heads else text
    lost.extend(f"device {_unquoted(found[1])}: its driver cannot be read" for found in _DEVICE.finditer(before))
    for head, end in zip(heads, [*(head.start() for head in heads[1:]), len(text)], strict=False):
        yield _unquoted(head[1]), text[head.end() : end]


def _unquoted(name: str) -> str:
    try:
        return go_json.valid(json.loads(f'"{name}"', strict=False))
    except json.JSONDecodeError:
        return name


def _devices(driver: str, section: str, lost: list[str]) -> Iterator[DeviceHealth]:
    def label(start: int) -> str | None:
        key = _KEY.search(section[max(start - _BEFORE, 0) : start])
        return f"device {_unquoted(key[1])} of {driver}" if key else None

    return scan(section, _device, label, lost)


def _device(value: Any) -> DeviceHealth | None:
    names = {name for name, _ in go_json.members(value)} if isinstance(value, Members) else set()
    return health_file.read_device(value) if names >= _NAMES else None
