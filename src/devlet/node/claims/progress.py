"""The progress of claims and pods, for display: what is being done, what failed, which pods wait, and since when.

Nothing is decided by it, and a restart forgets it.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from devlet.kit.clock import Clock
from devlet.node.claims.claim_info_cache import parts
from devlet.node.claims.records import ClaimKey, ClaimRecord, ClaimState, Contested, PodWait
from devlet.objects.identifiers import ClaimUID, DriverName, PodUID
from devlet.state.claim_entry import ClaimEntry

__all__ = ["Progress"]


class _Note(Struct, frozen=True):
    state: ClaimState
    since: datetime
    message: str


class Progress:
    """The states of claims and the waits of pods."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._notes: dict[ClaimKey, _Note] = {}
        self._waits: dict[PodUID, PodWait] = {}

    def note(self, key: ClaimKey, state: ClaimState, message: str = "") -> None:
        """Record the state of a claim. It begins when this is first called with the state."""
        before = self._notes.get(key)
        since = before.since if before and before.state is state else self._clock.now()
        self._notes[key] = _Note(state, since, message)

    def forget(self, key: ClaimKey) -> None:
        self._notes.pop(key, None)

    def waits_for(
        self,
        pod: PodUID,
        claims: Sequence[ClaimKey],
        message: str,
        drivers: Collection[str] = (),
        contested: Iterable[tuple[str, str, str]] = (),
    ) -> None:
        before = self._waits.get(pod)
        since = before.since if before else self._clock.now()
        names = tuple(map(DriverName, sorted(drivers)))
        devices = tuple(sorted(Contested(device, holder, claim) for claim, device, holder in contested))
        self._waits[pod] = PodWait(pod, tuple(claims), since, message, names, devices)

    def forget_pod(self, pod: PodUID) -> None:
        self._waits.pop(pod, None)

    def waits(self) -> list[PodWait]:
        return sorted(self._waits.values(), key=lambda wait: (wait.since, wait.pod))

    def record(self, key: ClaimKey, entry: ClaimEntry) -> ClaimRecord:
        drivers, pods = parts(entry), tuple(map(PodUID, sorted(entry.pods or ())))
        if (note := self._notes.get(key)) is not None:
            return ClaimRecord(key, ClaimUID(entry.uid), note.state, drivers, pods, note.since, note.message)
        done = all(part.devices is not None for part in drivers)
        state = ClaimState.PREPARED if done else ClaimState.PREPARING
        return ClaimRecord(key, ClaimUID(entry.uid), state, drivers, pods)
