"""What pods had of claims that were unprepared a while ago: a device may turn out to be the reason for their end only
afterwards, and then their status should say so. Not in the file: a restart forgets it."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from devlet.kit.clock import Clock
from devlet.node.claims.book import identities
from devlet.node.claims.records import ClaimKey
from devlet.objects.identifiers import DeviceIdentity, PodUID
from devlet.state.claim_entry import ClaimEntry

__all__ = ["Settings", "Tombstones"]


@dataclass(frozen=True, slots=True)
class Settings:
    keep: float = 60.0  # seconds
    most: int = 1024  # pods


class Tombstones:
    def __init__(self, clock: Clock, settings: Settings = Settings()) -> None:
        self._clock = clock
        self._settings = settings
        self._pods: OrderedDict[PodUID, tuple[float, Mapping[ClaimKey, ClaimEntry]]] = OrderedDict()

    def add(self, pod: PodUID, entries: Mapping[ClaimKey, ClaimEntry]) -> None:
        """Also what is left of a pod of which there is something already."""
        self._forget()
        _, before = self._pods.pop(pod, (0.0, {}))
        self._pods[pod] = (self._clock.monotonic() + self._settings.keep, {**before, **entries})

    def get(self, pod: PodUID, key: ClaimKey) -> ClaimEntry | None:
        self._forget()
        return self._pods[pod][1].get(key) if pod in self._pods else None

    def users(self, devices: Iterable[DeviceIdentity]) -> frozenset[PodUID]:
        self._forget()
        wanted = frozenset(devices)
        return frozenset(
            pod
            for pod, (_, entries) in self._pods.items()
            if any(identity in wanted for entry in entries.values() for identity in identities(entry))
        )

    def _forget(self) -> None:
        now = self._clock.monotonic()
        while self._pods and (len(self._pods) > self._settings.most or next(iter(self._pods.values()))[0] < now):
            self._pods.popitem(last=False)
