"""The pods that wait for a node or for devices: one record per pod, the queue of attempts, and the reports that are
due.
"""

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import inf

import anyio

from devlet.control.scheduler.decision import Refusal
from devlet.control.scheduler.queue import PodQueue
from devlet.control.scheduler.settings import ReportTimes
from devlet.kit.clock import Clock, wait
from devlet.objects.identifiers import PodUID
from devlet.objects.types.pod import Pod

__all__ = ["PendingPod", "PendingPods", "ReportQueue"]


@dataclass(slots=True, eq=False)
class PendingPod:
    """What is known of a pending pod beyond its object.

    `refusal` is the outcome of its last attempt, `failures` the number of attempts in a row that ended with an error,
    and `reported` the last reason that was reported. While a pod backs off after an error, changes of its claims do not
    wake it. `is_gone` marks a pod that was deleted while it was being bound."""

    pod: Pod
    refusal: Refusal | None = None
    failures: int = 0
    is_backing_off: bool = False
    is_binding: bool = False
    is_gone: bool = False
    reported: str | None = None
    is_report_due: bool = False


class ReportQueue:
    """The pods whose reasons are to be reported, by the time when each report is due."""

    def __init__(self, clock: Clock, times: ReportTimes) -> None:
        self._clock = clock
        self._times = times
        self._due: list[tuple[float, int, PendingPod]] = []
        self._numbers = count()
        self._refresh_at = inf
        self._added = anyio.Event()

    def ask(self, record: PendingPod, after: float = 0.0) -> None:
        """Report why the pod waits, if it still does after so many seconds.

        A pod with an earlier report waits longer: where much happens, reasons change all the time."""
        self.add(record, after if record.reported is None else max(after, self._times.again))

    def add(self, record: PendingPod, after: float = 0.0) -> None:
        """Make a report due after so many seconds, unless one is due already."""
        if not record.is_report_due:
            record.is_report_due = True
            heappush(self._due, (self._clock.monotonic() + after, next(self._numbers), record))
            self._added.set()

    def refresh(self) -> None:
        """Ask for reports of all waiting pods in a while, because their reasons may have changed."""
        if self._refresh_at == inf:
            self._refresh_at = self._clock.monotonic() + self._times.refresh
            self._added.set()

    def is_refresh_due(self) -> bool:
        """Return True if a refresh was asked for and is due now, and forget it."""
        if self._refresh_at > self._clock.monotonic():
            return False
        self._refresh_at = inf
        return True

    def pop(self) -> PendingPod | None:
        """Return the next pod whose report is due now."""
        if not self._due or self._due[0][0] > self._clock.monotonic():
            return None
        record = heappop(self._due)[2]
        record.is_report_due = False
        return record

    async def until_due(self) -> None:
        """Wait until a report may be due."""
        at = min(self._refresh_at, self._due[0][0] if self._due else inf)
        self._added = anyio.Event()
        await wait(self._added, self._clock, at - self._clock.monotonic())


class PendingPods:
    """All pending pods. `arrivals` counts the changes of placed pods, which may satisfy pod affinity. `losses` counts
    how often devices or capacity were taken, so that reasons may have changed."""

    def __init__(self, clock: Clock, times: ReportTimes) -> None:
        self.queue = PodQueue()
        self.reports = ReportQueue(clock, times)
        self.arrivals = 0
        self.losses = 0
        self._times = times
        self._records: dict[PodUID, PendingPod] = {}
        self._with_affinity: set[PendingPod] = set()  # of these records; they wait for other pods

    def get(self, uid: PodUID) -> PendingPod | None:
        record = self._records.get(uid)
        return None if record is None or record.is_gone else record

    def binding(self, uid: PodUID) -> PendingPod | None:
        """Return the record of a pod that is being bound, even if the pod was deleted meanwhile."""
        record = self._records.get(uid)
        return record if record is not None and record.is_binding else None

    def add(self, pod: Pod) -> PendingPod:
        record = self._records[pod.uid] = PendingPod(pod)
        return record

    def forget(self, uid: PodUID) -> None:
        """Remove a pod that is not pending any more. The record of one that is being bound stays until that ends."""
        self.queue.remove(uid)
        record = self._records.get(uid)
        if record is None:
            return
        self._with_affinity.discard(record)
        if record.is_binding:
            record.is_gone = True
        else:
            del self._records[uid]

    # Attempts and their outcomes

    def refuse(self, record: PendingPod, refusal: Refusal) -> None:
        """Note why the pod waits, and ask for a report."""
        record.refusal = refusal
        self.reports.ask(record, self._times.transient if refusal.transient else 0.0)

    def put_off(self, record: PendingPod, refusal: Refusal) -> None:
        """End an attempt with a refusal."""
        record.failures = 0
        self.queue.wait(record.pod.uid, refusal.wake_on)
        self.refuse(record, refusal)

    def wake(self, uid: PodUID) -> None:
        """Retry a pod whose claims have changed, unless it is being bound or backs off."""
        record = self._records.get(uid)
        if record is not None and not record.is_binding and not record.is_backing_off:
            self.queue.wake(uid)

    def end_back_off(self, record: PendingPod) -> None:
        record.is_backing_off = False
        if self._records.get(record.pod.uid) is record:
            self.queue.wake(record.pod.uid)

    def start_binding(self, record: PendingPod) -> None:
        """Note that the pod has a place, which may be what other pods wait for."""
        record.is_binding = True
        self._with_affinity.discard(record)
        self.pods_changed()

    # Other pods

    def await_others(self, record: PendingPod) -> None:
        """Retry the pod whenever other pods are placed, because it has pod affinity. Do nothing if it was forgotten
        during its attempt."""
        if self._records.get(record.pod.uid) is record:
            self._with_affinity.add(record)

    def pods_changed(self) -> None:
        """A pod was placed, or the labels of a placed pod or its namespace changed: retry those with pod affinity."""
        self.arrivals += 1
        for record in self._with_affinity:
            if not record.is_backing_off:
                self.queue.wake(record.pod.uid)

    def capacity_taken(self) -> None:
        """Devices or capacity were taken: the reasons of waiting pods may have changed."""
        self.losses += 1
        self.reports.refresh()

    # Reports

    def is_waiting(self, record: PendingPod) -> bool:
        uid = record.pod.uid
        return uid in self.queue.waiting and self._records.get(uid) is record

    def next_report(self) -> PendingPod | None:
        """Return the next pod whose report is due now."""
        if self.reports.is_refresh_due():
            for uid in self.queue.waiting:
                self.reports.add(self._records[uid])
        return self.reports.pop()
