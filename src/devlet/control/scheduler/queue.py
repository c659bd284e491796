"""Pods that wait for a node: those whose turn it is, and those for whom something has to happen first.

A pod that did not fit says what could help it (`Wake`); when that happens it has its turn again, in its old place.
There is no polling: as long as nothing happens nobody is tried.

    put ─▶ READY ──pop──▶ (tried) ──▶ wait(for) ─▶ WAITING ──wake──▶ READY
                              └─────▶ removed, when it has its node
"""

from collections.abc import Collection
from enum import Flag, auto
from heapq import heappop, heappush
from itertools import count

import anyio

from devlet.objects.identifiers import PodUID

__all__ = ["PodQueue", "Wake"]


class Wake(Flag):
    """What may help a pod. What happens to itself or to its own claims always does."""

    ITSELF = 0
    NODES = auto()  # a node is new, or changed
    ROOM = auto()  # a pod has gone from a node
    DEVICES = auto()  # a slice or class changed, or a claim gave back what it had
    ANYTHING = NODES | ROOM | DEVICES


_Place = tuple[int, int]  # the higher priority first, then who came first


class PodQueue:
    def __init__(self) -> None:
        self._numbers = count()
        self._places: dict[PodUID, _Place] = {}
        self._ready: list[tuple[_Place, PodUID]] = []
        self._is_ready: set[PodUID] = set()
        self._waiting: dict[PodUID, Wake] = {}
        self._woken: dict[PodUID, Wake] = {}  # while it is tried: what happened since
        self._not_empty = anyio.Event()
        self.happenings = 0  # how often something happened that may help somebody

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, pod: PodUID) -> bool:
        return pod in self._places

    @property
    def ready(self) -> int:
        return len(self._is_ready)

    @property
    def waiting(self) -> Collection[PodUID]:
        return self._waiting.keys()

    def put(self, pod: PodUID, priority: int = 0) -> None:
        """It has its turn, now or again."""
        if pod not in self._places:
            self._places[pod] = (-priority, next(self._numbers))
        self.wake(pod)

    def park(self, pod: PodUID, priority: int = 0) -> None:
        """It is new, and has its turn when something happens to itself."""
        self._places[pod] = (-priority, next(self._numbers))
        self._waiting[pod] = Wake.ITSELF

    def remove(self, pod: PodUID) -> None:
        """Nobody waits any longer."""
        self._places.pop(pod, None)
        self._waiting.pop(pod, None)
        self._woken.pop(pod, None)
        self._is_ready.discard(pod)

    async def pop(self) -> PodUID:
        """The first whose turn it is. It is being tried until it waits, is put or is removed."""
        while True:
            while self._ready:
                place, pod = heappop(self._ready)
                if pod in self._is_ready and self._places.get(pod) == place:
                    self._is_ready.discard(pod)
                    self._woken[pod] = Wake.ITSELF
                    return pod
            self._not_empty = anyio.Event()
            await self._not_empty.wait()

    def wait(self, pod: PodUID, for_: Wake) -> None:
        """It was tried and did not fit. If what it waits for has happened meanwhile it has its turn at once."""
        if pod not in self._places or pod in self._is_ready:
            self._woken.pop(pod, None)
            return
        since = self._woken.pop(pod, Wake.ITSELF)
        self._waiting[pod] = for_
        if since & for_:
            self.wake(pod)

    def wake(self, pod: PodUID) -> None:
        """Something happened to itself."""
        if pod in self._places and pod not in self._is_ready:
            self._waiting.pop(pod, None)
            self._is_ready.add(pod)
            heappush(self._ready, (self._places[pod], pod))
            self._not_empty.set()

    def happened(self, what: Wake) -> None:
        """Everybody who waits for it has a turn."""
        self.happenings += 1
        for pod in [pod for pod, for_ in self._waiting.items() if for_ & what]:
            self.wake(pod)
        for pod in self._woken:
            self._woken[pod] |= what
