"""Record Kubernetes events, which people read in `describe` and `get events`.

Recording never blocks and never fails. Events that the cluster does not accept in time are lost. If there are very many
events they are written at a limited rate, warnings first. If the same thing happens again within ten minutes, the count
of the existing Event is increased.
"""

import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count

import anyio
import msgspec
from anyio.abc import TaskStatus
from msgspec import Struct

from devlet.cluster.client import Cluster, MergePatch
from devlet.errors import AlreadyExists, DevletError, NotFound, Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.changes import Changes
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.kit.token_bucket import TokenBucket
from devlet.objects.documents import Document
from devlet.objects.kinds import EVENTS
from devlet.objects.names import DNS_SUBDOMAIN_MAX
from devlet.objects.types.meta import ObjectReference
from devlet.objects.validation.event import NOTE_MAX, REASON_MAX
from devlet.objects.values.timestamps import format_time

__all__ = ["CLUSTER_NAMESPACE", "NORMAL", "WARNING", "Recorder", "Settings"]

log = logging.getLogger(__name__)

NORMAL = "Normal"
WARNING = "Warning"
CLUSTER_NAMESPACE = "default"  # where events about objects without a namespace are


@dataclass(frozen=True, slots=True)
class Settings:
    window: float = 600.0  # seconds within which a repeat increases the count of the Event
    waiting: int = 10_000  # events that wait to be written; further ones are dropped
    rate: float = 50.0  # events per second on average, as for kubelets: other requests must not wait for them
    burst: int = 100
    remembered: int = 4096  # Events whose count can be increased
    retry: Backoff = field(default=Backoff(0.1, 10.0))
    tries: int = 12
    drain: float = 2.0  # seconds for the events that wait at the stop


class _What(Struct, frozen=True):
    """What makes two events the same."""

    about: ObjectReference
    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class _Times:
    first: datetime
    last: datetime
    count: int = 1
    tried: str = ""  # the name under which it may have been created already, if the answer was lost


@dataclass(frozen=True, slots=True)
class _Written:
    name: str
    times: _Times


class Recorder:
    """Records events as `component` on `host`."""

    def __init__(
        self, cluster: Cluster, component: str, host: str, clock: Clock, settings: Settings = Settings()
    ) -> None:
        self._cluster = cluster
        self._component = component
        self._host = host
        self._clock = clock
        self._settings = settings
        self._waiting: dict[str, OrderedDict[_What, _Times]] = {WARNING: OrderedDict(), NORMAL: OrderedDict()}
        self._bucket = TokenBucket(settings.rate, settings.burst, clock)
        self._written: OrderedDict[_What, _Written] = OrderedDict()
        self._numbers = count()
        self._added = Changes()
        self.dropped = 0  # for metrics and tests

    def record(self, about: ObjectReference, type: str, reason: str, message: str) -> None:
        """Record an event without waiting. Messages are cut at 1,024 characters, as in Kubernetes."""
        what = _What(about, type, reason[:REASON_MAX], message[:NOTE_MAX])
        now = self._clock.now()
        queue = self._waiting.setdefault(type, OrderedDict())
        if (waits := queue.get(what)) is not None:
            queue[what] = replace(waits, last=now, count=waits.count + 1)
        elif sum(map(len, self._waiting.values())) < self._settings.waiting:
            queue[what] = _Times(now, now)
            self._added.notify()
        else:
            self.dropped += 1

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Write events until cancelled. Then write those that wait, within a short time."""
        task_status.started()
        try:
            while True:
                seen = self._added.version
                await self._drain()
                await self._added.after(seen)
        finally:
            with anyio.move_on_after(self._settings.drain, shield=True):
                await self._drain(tries=1)

    async def _drain(self, tries: int | None = None) -> None:
        while queue := next(filter(None, self._waiting.values()), None):  # warnings first
            if tries is None and not self._bucket.take():
                await self._clock.sleep(1 / self._settings.rate)
                continue
            what, times = queue.popitem(last=False)
            name = times.tried or self._name(what.about, times.first)
            try:
                await self._persist(what, times, name, tries or self._settings.tries)
            except DevletError as e:
                log.warning("event lost", extra=facts(reason=what.reason, object=what.about.name, err=e))
            except BaseException:
                self._put_back(what, replace(times, tried=name))
                raise

    def _put_back(self, what: _What, times: _Times) -> None:
        """Put back an event whose write was cancelled; it may have been written."""
        queue = self._waiting[what.type]
        later = queue.get(what)
        queue[what] = _together(times, later) if later else times
        queue.move_to_end(what, last=False)

    async def _persist(self, what: _What, times: _Times, name: str, tries: int) -> None:
        for delay in self._settings.retry.delays(random.random):
            tries -= 1
            try:
                return await self._write(what, times, name)
            except Unavailable:
                if tries <= 0:
                    raise
                times = replace(times, tried=name)
                await self._clock.sleep(delay)

    async def _write(self, what: _What, times: _Times, name: str) -> None:
        before = self._written.get(what)
        if before is None or times.first - before.times.last > timedelta(seconds=self._settings.window):
            return await self._create(what, times, name)
        together = _together(before.times, times)
        try:
            await self._count_up(what, before.name, together)
        except NotFound:  # it was deleted
            await self._create(what, times, name)
        else:
            self._remember(what, _Written(before.name, together))

    async def _count_up(self, what: _What, name: str, times: _Times) -> None:
        patch = MergePatch({"count": times.count, "lastTimestamp": format_time(times.last)})
        await self._cluster.patch(EVENTS, name, patch, _namespace(what.about))

    async def _create(self, what: _What, times: _Times, name: str) -> None:
        try:
            await self._cluster.create(EVENTS, self._document(what, times, name), _namespace(what.about))
        except AlreadyExists:
            if times.tried != name:
                return await self._create(what, times, self._name(what.about, times.first))
        self._remember(what, _Written(name, times))

    def _document(self, what: _What, times: _Times, name: str) -> Document:
        return {
            "metadata": {"name": name, "namespace": _namespace(what.about)},
            "involvedObject": _reference(what.about),
            "reason": what.reason,
            "message": what.message,
            "source": {"component": self._component, "host": self._host},
            "firstTimestamp": format_time(times.first),
            "lastTimestamp": format_time(times.last),
            "count": times.count,
            "type": what.type,
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }

    def _name(self, about: ObjectReference, moment: datetime) -> str:
        """Return the object's name with a unique number: the time in nanoseconds, as in Kubernetes, with a counter in
        its last digits."""
        number = f"{int(moment.timestamp() * 1e6) * 1000 + next(self._numbers) % 1_000_000:x}"
        return f"{about.name[: DNS_SUBDOMAIN_MAX - 1 - len(number)].rstrip('-.')}.{number}"

    def _remember(self, what: _What, written: _Written) -> None:
        self._written[what] = written
        self._written.move_to_end(what)
        if len(self._written) > self._settings.remembered:
            self._written.popitem(last=False)


def _together(earlier: _Times, later: _Times) -> _Times:
    return _Times(earlier.first, later.last, earlier.count + later.count, earlier.tried)


def _namespace(about: ObjectReference) -> str:
    return about.namespace or CLUSTER_NAMESPACE


def _reference(about: ObjectReference) -> Document:
    found: Mapping[str, str] = msgspec.to_builtins(about)
    return {key: value for key, value in found.items() if value}
