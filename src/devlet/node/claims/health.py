"""How the devices of claims are, from what instances of drivers say. Pure: the time is handed in, in seconds.

A driver may have several instances, and each speaks for itself: the end of one takes back what that one said and no
more. Where two speak of one device, what changed last counts. The mere repetition of an older word is no change, so two
that disagree do not take turns.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName
from devlet.plugins.dra import DeviceReport
from devlet.state.health_file import HEALTHY, UNHEALTHY, UNKNOWN, DeviceHealth

__all__ = ["Health", "HealthCache", "Source", "shortened"]

TIMEOUT = 30.0  # seconds for which a word holds, if the driver does not say it
MAX_TIMEOUT = 10 * 365 * 24 * 3600.0  # the file cannot hold what is far beyond that
MAX_MESSAGE = 1024  # bytes
MAX_DEVICES = 10_000  # of one instance, with those that its last report left out

_ELLIPSIS = "..."
_RESTORED = 0  # the number of the instance that stands for a driver's part of the file


class Health(Struct, frozen=True):
    """`status` is Healthy, Unhealthy or Unknown."""

    status: str = UNKNOWN
    message: str = ""


class Source(Struct, frozen=True, order=True):
    """One instance of a driver. Those that came later have greater numbers; the first is 1."""

    driver: DriverName
    number: int


class _Word(Struct, frozen=True):
    """What an instance says of a device: last at `at`, without a change since `since`."""

    health: Health
    timeout: float
    at: float
    since: float

    @property
    def expiry(self) -> float:
        return self.at + self.timeout


_Words = dict[DeviceIdentity, _Word]


class HealthCache:
    """Functions that may change something say which devices did: it is another status, message or validity now, or
    there is none any more, or one for the first time."""

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._drivers: dict[DriverName, _Driver] = {}

    def health(self, device: DeviceIdentity, now: float) -> Health:
        driver = self._drivers.get(device.driver)
        word = driver.newest(device, now) if driver else None
        return word.health if word else Health()

    def report(self, source: Source, devices: Iterable[DeviceReport], now: float) -> frozenset[DeviceIdentity]:
        """A complete list. What is not in it is as it was, until its time has passed. What is too much is Unknown."""
        driver = self._drivers.setdefault(source.driver, _Driver())
        words = driver.words.setdefault(source.number, {})
        said = dict(islice(self._said(source.driver, words, devices, now), MAX_DEVICES))
        words |= said
        if len(words) > MAX_DEVICES:
            driver.words[source.number] = said
        return driver.settle(now)

    def _said(
        self, driver: DriverName, before: _Words, devices: Iterable[DeviceReport], now: float
    ) -> Iterator[tuple[DeviceIdentity, _Word]]:
        for each in devices:
            if each.pool and each.device:
                identity = DeviceIdentity(driver, PoolName(each.pool), DeviceName(each.device))
                word = _Word(_health(each.health, each.message), self._validity(each.timeout), now, now)
                yield identity, _continued(before.get(identity), word)

    def _validity(self, timeout: float) -> float:
        return min(timeout, MAX_TIMEOUT) if timeout > 0 else self._timeout

    def end(self, source: Source, now: float) -> frozenset[DeviceIdentity]:
        """Its stream has ended. What the file said of its driver is not believed any longer either."""
        if (driver := self._drivers.get(source.driver)) is None:
            return frozenset()
        driver.words.pop(source.number, None)
        driver.words.pop(_RESTORED, None)
        return driver.settle(now)

    def expire(self, now: float) -> frozenset[DeviceIdentity]:
        """What has become old by now, without anybody saying anything."""
        changed = [device for driver in self._drivers.values() for device in driver.settle(now)]
        self._drivers = {name: driver for name, driver in self._drivers.items() if driver.words}
        return frozenset(changed)

    @property
    def next_expiry(self) -> float | None:
        """When `expire` has something to do, if nothing is reported before."""
        return min((word.expiry for driver in self._drivers.values() for word in driver.current.values()), default=None)

    def saved(self, now: float, clock: datetime) -> dict[str, tuple[DeviceHealth, ...]]:
        """What holds now, for the file; `clock` is the time of day."""
        found = {
            name: tuple(_saved(device, word, now, clock) for device, word in sorted(driver.current.items()))
            for name, driver in self._drivers.items()
        }
        return {name: devices for name, devices in found.items() if devices}

    def restore(self, saved: Mapping[str, Sequence[DeviceHealth]], now: float, clock: datetime) -> None:
        """Begin with what the file says, as far as it still holds. A time to come is taken for the present: it holds
        no longer than if it were said now."""
        for name, devices in saved.items():
            driver = self._drivers.setdefault(DriverName(name), _Driver())
            words = driver.words.setdefault(_RESTORED, {})
            for each in (device for device in devices if device.pool and device.device):
                age = max((clock - each.updated).total_seconds(), 0.0)
                identity = DeviceIdentity(DriverName(name), PoolName(each.pool), DeviceName(each.device))
                health = _health(each.health, each.message)
                words[identity] = _Word(health, self._validity(each.timeout), now - age, now - age)
            driver.settle(now)


class _Driver:
    """The words of its instances by their numbers, and those of them that count as of the last look."""

    def __init__(self) -> None:
        self.words: dict[int, _Words] = {}
        self.current: _Words = {}

    def newest(self, device: DeviceIdentity, now: float) -> _Word | None:
        found = [(number, words[device]) for number, words in self.words.items() if device in words]
        valid = [(word.since, number, word) for number, word in found if now < word.expiry]
        return max(valid, key=lambda each: each[:2])[2] if valid else None

    def settle(self, now: float) -> frozenset[DeviceIdentity]:
        """Forget what is old, see which words count now, and say for which devices that is something new."""
        self.words = {number: left for number, words in self.words.items() if (left := _valid(words, now))}
        before, self.current = self.current, {}
        for number in sorted(self.words):
            for device, word in self.words[number].items():
                if device not in self.current or word.since >= self.current[device].since:
                    self.current[device] = word
        return frozenset(
            device
            for device in before.keys() | self.current.keys()
            if not _same(before.get(device), self.current.get(device))
        )


def _valid(words: _Words, now: float) -> _Words:
    return {device: word for device, word in words.items() if now < word.expiry}


def _same(one: _Word | None, other: _Word | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.health == other.health and one.timeout == other.timeout


def _continued(before: _Word | None, word: _Word) -> _Word:
    """Said again in time, it is the same word."""
    is_same = before is not None and word.at < before.expiry and _same(before, word)
    return replace(word, since=before.since) if before is not None and is_same else word


def _health(status: str, message: str) -> Health:
    return Health(status if status in (HEALTHY, UNHEALTHY) else UNKNOWN, shortened(message))


def shortened(message: str) -> str:
    """With at most 1024 bytes, and no character cut in two."""
    blob = message.encode("utf-8", "replace")
    if len(blob) <= MAX_MESSAGE:
        return message
    return blob[: MAX_MESSAGE - len(_ELLIPSIS)].decode("utf-8", "ignore") + _ELLIPSIS


def _saved(device: DeviceIdentity, word: _Word, now: float, clock: datetime) -> DeviceHealth:
    updated = clock - timedelta(seconds=now - word.at)
    health = word.health
    return DeviceHealth(device.pool, device.device, health.status, updated, word.timeout, health.message)
