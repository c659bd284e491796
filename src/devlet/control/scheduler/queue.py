"""The order in which pending pods are attempted, and what each refused pod waits for.

A refused pod waits for the changes that may help it (`Wake`). After such a change it is ready again, in its old
position. As long as nothing changes, no pod is attempted.

    put ─▶ READY ──pop──▶ (attempted) ──▶ wait(wake_on) ─▶ WAITING ──wake──▶ READY
                              └─────▶ removed, when it has its node
"""

from collections.abc import Collection
from enum import Flag, auto
from heapq import heappop, heappush
from itertools import count

from devlet.kit.changes import Changes
from devlet.objects.identifiers import PodUID

__all__ = ["PodQueue", "Wake"]


class Wake(Flag):
    """What may help a refused pod. Changes of the pod and of its claims always may."""

    ITSELF = 0
    NODES = auto()  # a node was added or changed
    CAPACITY = auto()  # a pod left its node
    DEVICES = auto()  # a slice or class changed, or a claim was deallocated
    ANYTHING = NODES | CAPACITY | DEVICES


_Position = tuple[int, int]  # negative priority, then arrival


class PodQueue:
    """`changes` counts the calls of `changed`."""

    def __init__(self) -> None:
        self._numbers = count()
        self._positions: dict[PodUID, _Position] = {}
        self._ready: list[tuple[_Position, PodUID]] = []
        self._is_ready: set[PodUID] = set()
        self._waiting: dict[PodUID, Wake] = {}
        self._attempted: dict[PodUID, Wake] = {}  # with what changed since the attempt began
        self._became_ready = Changes()
        self.changes = 0

    def __len__(self) -> int:
        return len(self._positions)

    def __contains__(self, pod: PodUID) -> bool:
        return pod in self._positions

    @property
    def ready(self) -> int:
        return len(self._is_ready)

    @property
    def waiting(self) -> Collection[PodUID]:
        return self._waiting.keys()

    def put(self, pod: PodUID, priority: int = 0) -> None:
        """Add a pod, or retry one that is there."""
        if pod not in self._positions:
            self._positions[pod] = (-priority, next(self._numbers))
        self.wake(pod)

    def park(self, pod: PodUID, priority: int = 0) -> None:
        """Add a pod that waits for a change of itself."""
        self._positions[pod] = (-priority, next(self._numbers))
        self._waiting[pod] = Wake.ITSELF

    def remove(self, pod: PodUID) -> None:
        self._positions.pop(pod, None)
        self._waiting.pop(pod, None)
        self._attempted.pop(pod, None)
        self._is_ready.discard(pod)

    async def pop(self) -> PodUID:
        """Return the first ready pod, waiting for one if necessary. It counts as being attempted until it waits, is put
        or is removed."""
        while True:
            while self._ready:
                position, pod = heappop(self._ready)
                if pod in self._is_ready and self._positions.get(pod) == position:
                    self._is_ready.discard(pod)
                    self._attempted[pod] = Wake.ITSELF
                    return pod
            await self._became_ready.next()

    def wait(self, pod: PodUID, wake_on: Wake) -> None:
        """End an attempt with a refusal. The pod is ready at once if what it waits for has changed during the
        attempt."""
        if pod not in self._positions or pod in self._is_ready:
            self._attempted.pop(pod, None)
            return
        changed = self._attempted.pop(pod, Wake.ITSELF)
        self._waiting[pod] = wake_on
        if changed & wake_on:
            self.wake(pod)

    def wake(self, pod: PodUID) -> None:
        """Retry a pod, for example after a change of itself."""
        if pod in self._positions and pod not in self._is_ready:
            self._waiting.pop(pod, None)
            self._is_ready.add(pod)
            heappush(self._ready, (self._positions[pod], pod))
            self._became_ready.notify()

    def changed(self, what: Wake) -> None:
        """Retry all pods that wait for such a change."""
        self.changes += 1
        for pod in [pod for pod, wake_on in self._waiting.items() if wake_on & what]:
            self.wake(pod)
        for pod in self._attempted:
            self._attempted[pod] |= what
