"""The health of the devices of claims, from the reports of driver instances. Pure: time is an argument, in seconds.

A driver may have several instances, and each reports for itself: when the stream of one ends, only its own reports are
dropped. If two instances report the same device, the report that changed last counts. Repeating an older report is not
a change, so the health does not alternate between two instances that disagree.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName
from devlet.plugins.dra import DeviceReport
from devlet.state.health_file import HEALTHY, UNHEALTHY, UNKNOWN, DeviceHealth

__all__ = ["Health", "HealthCache", "Source", "truncated"]

TIMEOUT = 30.0  # seconds for which a report is valid, if the driver does not specify it
MAX_TIMEOUT = 10 * 365 * 24 * 3600.0  # the file format cannot store much longer times
MAX_MESSAGE = 1024  # bytes
MAX_DEVICES = 10_000  # of one instance, including those that its last report left out

_ELLIPSIS = "..."
_RESTORED = 0  # the number of the instance that stands for the reports from the file


class Health(Struct, frozen=True):
    """`status` is Healthy, Unhealthy or Unknown."""

    status: str = UNKNOWN
    message: str = ""


class Source(Struct, frozen=True, order=True):
    """One instance of a driver. Later instances have greater numbers; the first is 1."""

    driver: DriverName
    number: int


class _Entry(Struct, frozen=True):
    """What an instance reports about a device: last at `at`, unchanged since `since`."""

    health: Health
    timeout: float
    at: float
    since: float

    @property
    def expiry(self) -> float:
        return self.at + self.timeout


_Entries = dict[DeviceIdentity, _Entry]


class HealthCache:
    """Methods that may change something return the devices that changed: they have another status, message or validity,
    no valid report any more, or one for the first time."""

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._drivers: dict[DriverName, _Driver] = {}

    def health(self, device: DeviceIdentity, now: float) -> Health:
        driver = self._drivers.get(device.driver)
        entry = driver.newest(device, now) if driver else None
        return entry.health if entry else Health()

    def report(self, source: Source, devices: Iterable[DeviceReport], now: float) -> frozenset[DeviceIdentity]:
        """Record a complete list. Devices that it leaves out keep their health until it expires. Devices beyond the
        maximum are Unknown."""
        driver = self._drivers.setdefault(source.driver, _Driver())
        entries = driver.entries.setdefault(source.number, {})
        listed = dict(islice(self._reported(source.driver, entries, devices, now), MAX_DEVICES))
        entries |= listed
        if len(entries) > MAX_DEVICES:
            driver.entries[source.number] = listed
        return driver.update(now)

    def _reported(
        self, driver: DriverName, before: _Entries, devices: Iterable[DeviceReport], now: float
    ) -> Iterator[tuple[DeviceIdentity, _Entry]]:
        for each in devices:
            if each.pool and each.device:
                identity = DeviceIdentity(driver, PoolName(each.pool), DeviceName(each.device))
                entry = _Entry(_health(each.health, each.message), self._validity(each.timeout), now, now)
                yield identity, _continued(before.get(identity), entry)

    def _validity(self, timeout: float) -> float:
        return min(timeout, MAX_TIMEOUT) if timeout > 0 else self._timeout

    def end(self, source: Source, now: float) -> frozenset[DeviceIdentity]:
        """Drop the reports of an instance whose stream has ended, and those of its driver from the file."""
        if (driver := self._drivers.get(source.driver)) is None:
            return frozenset()
        driver.entries.pop(source.number, None)
        driver.entries.pop(_RESTORED, None)
        return driver.update(now)

    def expire(self, now: float) -> frozenset[DeviceIdentity]:
        """Drop the reports that have expired by now."""
        changed = [device for driver in self._drivers.values() for device in driver.update(now)]
        self._drivers = {name: driver for name, driver in self._drivers.items() if driver.entries}
        return frozenset(changed)

    @property
    def next_expiry(self) -> float | None:
        """The next time at which a report expires."""
        return min(
            (entry.expiry for driver in self._drivers.values() for entry in driver.current.values()), default=None
        )

    def saved(self, now: float, clock: datetime) -> dict[str, tuple[DeviceHealth, ...]]:
        """Return the valid reports, for the file. `clock` is the time of day."""
        found = {
            name: tuple(_saved(device, entry, now, clock) for device, entry in sorted(driver.current.items()))
            for name, driver in self._drivers.items()
        }
        return {name: devices for name, devices in found.items() if devices}

    def restore(self, saved: Mapping[str, Sequence[DeviceHealth]], now: float, clock: datetime) -> None:
        """Start with the reports from the file that are still valid. A time in the future counts as the present, so the
        report is valid no longer than a new one."""
        for name, devices in saved.items():
            driver = self._drivers.setdefault(DriverName(name), _Driver())
            entries = driver.entries.setdefault(_RESTORED, {})
            for each in (device for device in devices if device.pool and device.device):
                age = max((clock - each.updated).total_seconds(), 0.0)
                identity = DeviceIdentity(DriverName(name), PoolName(each.pool), DeviceName(each.device))
                health = _health(each.health, each.message)
                entries[identity] = _Entry(health, self._validity(each.timeout), now - age, now - age)
            driver.update(now)


class _Driver:
    """The entries of a driver's instances by their numbers, and the entries that counted at the last update."""

    def __init__(self) -> None:
        self.entries: dict[int, _Entries] = {}
        self.current: _Entries = {}

    def newest(self, device: DeviceIdentity, now: float) -> _Entry | None:
        found = [(number, entries[device]) for number, entries in self.entries.items() if device in entries]
        valid = [(entry.since, number, entry) for number, entry in found if now < entry.expiry]
        return max(valid, key=lambda each: each[:2])[2] if valid else None

    def update(self, now: float) -> frozenset[DeviceIdentity]:
        """Drop expired entries, find the entries that count now, and return the devices for which that is a change."""
        self.entries = {number: left for number, entries in self.entries.items() if (left := _valid(entries, now))}
        before, self.current = self.current, {}
        for number in sorted(self.entries):
            for device, entry in self.entries[number].items():
                if device not in self.current or entry.since >= self.current[device].since:
                    self.current[device] = entry
        return frozenset(
            device
            for device in before.keys() | self.current.keys()
            if not _same(before.get(device), self.current.get(device))
        )


def _valid(entries: _Entries, now: float) -> _Entries:
    return {device: entry for device, entry in entries.items() if now < entry.expiry}


def _same(one: _Entry | None, other: _Entry | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.health == other.health and one.timeout == other.timeout


def _continued(before: _Entry | None, entry: _Entry) -> _Entry:
    """Return the entry, with its earlier `since` if it repeats one that is still valid."""
    is_same = before is not None and entry.at < before.expiry and _same(before, entry)
    return replace(entry, since=before.since) if before is not None and is_same else entry


def _health(status: str, message: str) -> Health:
    return Health(status if status in (HEALTHY, UNHEALTHY) else UNKNOWN, truncated(message))


def truncated(message: str) -> str:
    """Cut the message to at most 1024 bytes, between characters."""
    blob = message.encode("utf-8", "replace")
    if len(blob) <= MAX_MESSAGE:
        return message
    return blob[: MAX_MESSAGE - len(_ELLIPSIS)].decode("utf-8", "ignore") + _ELLIPSIS


def _saved(device: DeviceIdentity, entry: _Entry, now: float, clock: datetime) -> DeviceHealth:
    updated = clock - timedelta(seconds=now - entry.at)
    health = entry.health
    return DeviceHealth(device.pool, device.device, health.status, updated, entry.timeout, health.message)
