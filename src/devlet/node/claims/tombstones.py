"""The claims that were recently unprepared: a device may turn out only afterwards to be the reason why a pod failed,
and the status of the pod should say so. They are not saved: a restart forgets them.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from devlet.kit.clock import Clock
from devlet.node.claims.claim_info_cache import identities
from devlet.node.claims.records import ClaimKey
from devlet.objects.identifiers import DeviceIdentity, PodUID
from devlet.state.claim_entry import ClaimEntry

__all__ = ["Settings", "Tombstones"]


@dataclass(frozen=True, slots=True)
class Settings:
    keep: float = 60.0  # seconds
    most: int = 1024  # pods


class Tombstones:
    """The last entries of claims by pod, for a limited time."""

    def __init__(self, clock: Clock, settings: Settings = Settings()) -> None:
        self._clock = clock
        self._settings = settings
        self._pods: OrderedDict[PodUID, tuple[float, Mapping[ClaimKey, ClaimEntry]]] = OrderedDict()

    def add(self, pod: PodUID, entries: Mapping[ClaimKey, ClaimEntry]) -> None:
        """Keep these entries of a pod, together with those that are kept already."""
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
