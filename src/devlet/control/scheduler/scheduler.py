"""Pods that wait get a node, and their claims devices.

    pods ──▶ queue ──▶ attempt: subject ─▶ placer ──▶ binder ──▶ claims reserved, pod bound
               ▲                        │ nowhere
               └── nodes, room, devices ┴─▶ waits, and is told why

One pod is decided on at a time, many are bound at the same time: what was decided counts from that moment on, written
or not. Everything is woken by what the informers tell; nothing is polled.
"""

import logging
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from functools import partial

import anyio
from anyio.abc import TaskGroup, TaskStatus
from anyio.lowlevel import checkpoint

from devlet.cluster.client import Cluster
from devlet.cluster.events import NORMAL, WARNING, Recorder
from devlet.cluster.informer import Changed
from devlet.control.claim_writes import ClaimWriter
from devlet.control.informers import BY_CLAIM, BY_NODE, BY_OWNER, Informers
from devlet.control.reservations import FULL, is_full
from devlet.control.scheduler import claim_checks, extended_resources, fit, news, reasons
from devlet.control.scheduler.binding import Binder, disown_claim, remove_claim
from devlet.control.scheduler.binding_conditions import BindingConditions
from devlet.control.scheduler.claim_book import ClaimBook, ClaimKey
from devlet.control.scheduler.devices import Devices
from devlet.control.scheduler.extended_resources import Classes
from devlet.control.scheduler.fit import PodNeeds
from devlet.control.scheduler.hopeless import Hopeless
from devlet.control.scheduler.metrics import SchedulerMetrics
from devlet.control.scheduler.nodes import NodeTable
from devlet.control.scheduler.overlap_check import OverlapCheck
from devlet.control.scheduler.placing import Assignment, Placer
from devlet.control.scheduler.queue import PodQueue, Wake
from devlet.control.scheduler.reporting import FAILED, Reporter
from devlet.control.scheduler.settings import Settings
from devlet.control.scheduler.subject import Subject, read_subject
from devlet.control.scheduler.unblocking import Unblocker
from devlet.control.slice_tracker import SliceTracker
from devlet.control.taints import sharing
from devlet.control.taints.device_taints import DeviceTaints
from devlet.errors import DevletError, InvalidInput, Overlapping
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.kit.metrics import Registry
from devlet.objects.identifiers import NodeName, PodUID
from devlet.objects.node_drivers import gone_drivers
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.core import Namespace
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod
from devlet.objects.types.slice import ResourceSlice

__all__ = ["Scheduler", "Settings"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _No:
    """It has no place now. `text` is why, unless that has yet to be found out."""

    for_: Wake
    text: str = ""
    patience: float = 0.0  # seconds before it is told


class Scheduler:
    """The informers must be complete before `run`, or devices could be given away that somebody has."""

    def __init__(
        self,
        cluster: Cluster,
        informers: Informers,
        recorder: Recorder,
        clock: Clock,
        metrics: Registry,
        settings: Settings = Settings(),
    ) -> None:
        self._cluster = cluster
        self._informers = informers
        self._recorder = recorder
        self._clock = clock
        self._settings = settings
        self._metrics = SchedulerMetrics(metrics)
        self._queue = PodQueue()
        self._devices = Devices()
        freed = partial(self._queue.happened, Wake.DEVICES)
        self._book = ClaimBook(informers.claims, self._devices, freed, self._landed)
        self._table = NodeTable(self._devices.allocator, self._namespace_labels)
        self._placer = Placer(self._table, self._devices, settings.candidates)
        self._classes: Classes | None = None
        self._pods: dict[PodUID, Pod] = {}
        self._no: dict[PodUID, _No] = {}
        self._failures: dict[PodUID, int] = {}
        self._resting: set[PodUID] = set()  # after an error; what happens to their claims does not wake them sooner
        self._binding: set[PodUID] = set()
        self._lonely: set[PodUID] = set()  # have to be near others, who may come
        self._arrivals = 0  # how often somebody came
        self._hopeless = Hopeless()
        self._reasons = Hopeless()
        self._takings = 0  # how often something was taken away that somebody may have wanted
        writer = ClaimWriter(cluster, clock, settings.write_tries, self._book.read)
        self._conditions = BindingConditions(self._book, recorder, self._metrics, clock, settings.binding_timeout)
        overlaps = OverlapCheck(informers.claims, self._devices.ledger, self._metrics, settings.own_write)
        self._binder = Binder(cluster, self._book, writer, self._conditions, overlaps, self._metrics, clock, settings)
        self._unblocker = Unblocker(self._book, self._devices, self._placer, writer, clock, settings)
        self._reporter = Reporter(cluster, recorder, clock, self, settings.report_again)
        self._metrics.show_overlaps(lambda: len(self._devices.ledger.all()))
        self._metrics.show_pending(lambda: {"active": self._queue.ready, "unschedulable": len(self._queue.waiting)})
        informers.nodes.on_change(self._node_changed)
        informers.namespaces.on_change(self._namespace_changed)
        informers.classes.on_change(self._class_changed)
        self._tracker = SliceTracker(informers, self._slice_changed, self._slice_removed)
        self._taints = DeviceTaints(informers, lambda _: self._queue.happened(Wake.DEVICES))
        informers.claims.on_change(self._claim_changed)
        informers.pods.on_change(self._pod_changed)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._reporter.run)
            task_status.started()
            while True:
                uid = await self._queue.pop()
                await checkpoint()  # or else a long queue keeps everybody from their turn
                await self._informers.following(self._settings.blind)
                await self._devices.idle()
                await self._attempt(uid, tasks)

    # Who waits, for the reporter

    @property
    def waiting_pods(self) -> Collection[PodUID]:
        return self._queue.waiting

    def waiting_pod(self, uid: PodUID) -> Pod | None:
        return self._pods.get(uid) if uid in self._queue.waiting else None

    async def reason(self, uid: PodUID) -> str:
        no, pod = self._no.get(uid), self._pods.get(uid)
        if no is None or pod is None or no.text:
            return no.text if no else ""
        try:
            subject = self._read(pod)
        except InvalidInput as e:
            return str(e)
        if not isinstance(subject, Subject):
            return subject.text
        with anyio.move_on_after(self._settings.report_again):
            while self._queue.ready:
                await self._clock.sleep(0.01)
        now, kind = self._moment, self._kind(subject)
        if known := self._reasons.why(kind, now):
            return known
        find = partial(reasons.reason, subject, self._table, self._devices, self._settings.explain_timeout)
        try:
            found = await self._devices.apart(find)
        except InvalidInput as e:
            return str(e)
        if found and (subject.waiting or subject.extended) and (hidden := self._tracker.hidden()):
            found = f"{found}; {reasons.hidden(hidden)}"[: reasons.LENGTH_MAX]
        if found and now == self._moment and not any(claim.name in found for claim in subject.claims):
            self._reasons.add(kind, now, found)
        return found

    @property
    def _moment(self) -> int:
        """As long as it is the same, so are the reasons."""
        return self._queue.happenings + self._takings

    def _taken(self) -> None:
        self._takings += 1
        self._reporter.refresh(self._settings.report_refresh)

    # One attempt

    async def _attempt(self, uid: PodUID, tasks: TaskGroup) -> None:
        pod = self._pods.get(uid)
        if pod is None or uid in self._binding:
            return
        began = self._clock.monotonic()
        try:
            found = await self._decide(pod)
        except InvalidInput as e:
            found = _No(Wake.ANYTHING, str(e))
        except DevletError as e:
            return self._failed(pod, e, tasks)
        except Exception as e:  # one pod that breaks the search must not keep all others from their turn
            log.error("attempt broke off", exc_info=e, extra=facts(pod=_name(pod)))
            return self._failed(pod, DevletError(f"error in the scheduler: {e!r}"), tasks)
        if uid not in self._pods:  # it has gone meanwhile
            return
        if isinstance(found, _No):
            self._metrics.attempted("unschedulable", self._clock.monotonic() - began)
            return self._put_off(uid, found)
        subject, assignment = found
        self._assume(subject, assignment)
        self._metrics.attempted("scheduled", self._clock.monotonic() - began)
        tasks.start_soon(self._bind, subject, assignment, tasks)

    async def _decide(self, pod: Pod) -> tuple[Subject, Assignment] | _No:
        subject = self._read(pod)
        if isinstance(subject, _No):
            return subject
        if no := self._obstacle(subject):
            return no
        unblocker = self._unblocker
        if await unblocker.drop_failed(subject) or await unblocker.drop_lost(subject, self._lost(pod)):
            return _No(Wake.DEVICES)
        if overlap := await unblocker.drop_overlapping(subject):
            self._metrics.overlapped()
            return _No(Wake.DEVICES, overlap, self._settings.report_after)
        if failed := self._unblocker.in_vain(subject):
            await self._unblocker.step_back(subject)
            why = claim_checks.binding(failed).message
            return _No(Wake.ITSELF, f"resourceclaim {failed.name} is not usable: {why}")
        if no := await self._tainted(subject):
            return no
        if subject.extended:
            await self._remove_left_over(pod)
        now = self._queue.happenings  # what happens during the search was not looked at
        if subject.needs.social.near:
            self._lonely.add(pod.uid)
        kind = self._kind(subject)
        if self._hopeless.has(kind, now):
            return _No(Wake.ANYTHING)
        if assignment := await self._place(subject):
            return subject, assignment
        if await self._unblocker.unblock(subject) or await self._unblocker.step_back(subject):
            return _No(Wake.DEVICES)
        self._hopeless.add(kind, now)
        return _No(Wake.ANYTHING)

    def _kind(self, subject: Subject) -> Hashable:
        """The same for pods that fit wherever the other one does."""
        social = subject.needs.social
        if not self._table.has_company_for(social):
            return subject.kind
        return subject.kind, social.key, self._arrivals if social.near else 0

    def _read(self, pod: Pod) -> Subject | _No:
        found = read_subject(pod, self._book.get, self._extended_classes())
        return _No(Wake.ITSELF, found, self._settings.report_after) if isinstance(found, str) else found

    def _obstacle(self, subject: Subject) -> _No | None:
        """What keeps it from every node."""
        classes = self._devices.allocator.inventory.classes
        for claim in subject.waiting:
            key = (claim.metadata.namespace, claim.metadata.name)
            if self._book.is_in_flight(key):
                return _No(Wake.ITSELF, claim_checks.IN_FLIGHT.format(*key), self._settings.report_after)
            if text := claim_checks.missing_class(claim, lambda name: name in classes):
                return _No(Wake.DEVICES, text)
        full = next((claim for claim in subject.unreserved if is_full(claim)), None)
        if full is not None:
            return _No(Wake.ITSELF, FULL.format(full.name))
        return None

    async def _tainted(self, subject: Subject) -> _No | None:
        """Devices of a claim that the pod would share, or find allocated, may have been tainted since."""
        for claim in subject.unreserved:
            if text := sharing.blocking(claim, self._taints.of):
                if await self._unblocker.drop(subject, claim):
                    return _No(Wake.DEVICES)
                return _No(Wake.DEVICES, f"resourceclaim {claim.name} cannot be shared: {text}")
        return None

    async def _place(self, subject: Subject) -> Assignment | None:
        return await self._devices.searched(partial(self._placer.place, subject), self._settings)

    async def _remove_left_over(self, pod: Pod) -> None:
        """A claim that an earlier attempt made for extended resources, and did not live to use."""
        claims = self._informers.claims.by_index(BY_OWNER, pod.uid)
        if (claim := extended_resources.existing(pod, claims)) is not None:
            await disown_claim(self._cluster, pod)
            await remove_claim(self._cluster, claim, self._book.read)

    def _put_off(self, uid: PodUID, no: _No) -> None:
        self._failures.pop(uid, None)
        self._queue.wait(uid, no.for_)
        self._wait(uid, no)

    def _wait(self, uid: PodUID, no: _No) -> None:
        self._no[uid] = no
        self._reporter.ask(uid, no.patience)

    def _failed(self, pod: Pod, error: DevletError, tasks: TaskGroup) -> None:
        """Something went wrong that has nothing to do with room or devices: try again after a while."""
        if pod.uid not in self._pods:  # it has gone meanwhile
            return
        attempt = self._failures.get(pod.uid, 0)
        self._failures[pod.uid] = attempt + 1
        at_once = attempt == 0 and isinstance(error, Overlapping)
        delay = 0.0 if at_once else self._settings.retry.delay(attempt, random.random)
        log.warning("pod not scheduled", extra=facts(pod=_name(pod), err=error, delay=delay))
        self._metrics.attempted("error")
        self._no[pod.uid] = _No(Wake.ANYTHING, str(error))
        self._queue.wait(pod.uid, Wake.ITSELF)
        if at_once:  # the pod may no longer wait when the reporter gets to it
            self._recorder.record(pod.reference, WARNING, FAILED, str(error))
        else:
            self._reporter.ask(pod.uid)
        self._resting.add(pod.uid)
        tasks.start_soon(self._wake_later, pod.uid, delay)

    async def _wake_later(self, uid: PodUID, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._resting.discard(uid)
        self._queue.wake(uid)

    # What was decided

    def _assume(self, subject: Subject, assignment: Assignment) -> None:
        uid = subject.pod.uid
        self._binding.add(uid)
        provided = subject.provided_on(entry.view) if (entry := self._table.get(assignment.node)) else frozenset()
        self._table.occupy(uid, assignment.node, subject.needs.without(provided))
        self._lonely.discard(uid)
        self._arrived()
        for granted in assignment.granted:
            self._book.reserve(granted.key, granted.results)
        self._taken()

    async def _bind(self, subject: Subject, assignment: Assignment, tasks: TaskGroup) -> None:
        pod = subject.pod
        try:
            await self._binder.bind(subject, assignment)
        except DevletError as e:
            return self._not_bound(pod.uid, e, tasks)
        except Exception as e:  # the other pods go on
            log.error("binding broke off", exc_info=e, extra=facts(pod=_name(pod)))
            return self._not_bound(pod.uid, DevletError(f"error in the scheduler: {e!r}"), tasks)
        self._bound(subject, assignment.node)

    def _not_bound(self, uid: PodUID, error: DevletError, tasks: TaskGroup) -> None:
        """It may have got a node meanwhile, or have gone."""
        self._binding.discard(uid)
        pod = self._pods.get(uid)
        if (pod is None or not pod.spec.node_name) and self._table.leave(uid):
            self._queue.happened(Wake.ROOM)
        if pod is not None and self._is_waiting(pod):
            self._failed(pod, error, tasks)
        else:
            self._forget(uid)

    def _bound(self, subject: Subject, node: NodeName) -> None:
        pod = subject.pod
        self._binding.discard(pod.uid)
        self._forget(pod.uid)
        log.debug("pod scheduled", extra=facts(pod=_name(pod), node=node))  # the event tells everybody
        if not subject.node:
            message = f"Successfully assigned {_name(pod)} to {node}"
            self._recorder.record(pod.reference, NORMAL, "Scheduled", message)

    def _forget(self, uid: PodUID) -> None:
        self._queue.remove(uid)
        self._reporter.forget(uid)
        self._no.pop(uid, None)
        self._failures.pop(uid, None)
        self._resting.discard(uid)
        self._lonely.discard(uid)
        self._pods.pop(uid, None)

    # What happens

    def _pod_changed(self, change: Changed[Pod]) -> None:
        old, new = change.old, change.new
        if old is not None and (new is None or new.uid != old.uid):
            self._gone(old.uid)
            old = None
        if new is None:
            return
        self._count(old, new)
        if new.uid in self._binding:
            self._pods[new.uid] = new
            return
        if not self._is_waiting(new) or self._was_bound(new):
            return self._forget(new.uid)
        is_new = new.uid not in self._pods
        self._pods[new.uid] = new
        if is_new and isinstance(claims := claim_checks.resolve(new, self._book.get), str):
            self._queue.park(new.uid, new.spec.priority or 0)
            self._wait(new.uid, _No(Wake.ITSELF, claims, self._settings.report_after))
        elif is_new or old is None or news.concerns(old, new):
            self._queue.put(new.uid, new.spec.priority or 0)

    def _arrived(self) -> None:
        """A pod has a node, or other labels: those who have to be near it have a turn."""
        self._arrivals += 1
        for uid in self._lonely - self._resting:
            self._queue.wake(uid)

    def _gone(self, uid: PodUID) -> None:
        self._forget(uid)
        if self._table.leave(uid):
            self._queue.happened(Wake.ROOM)

    def _count(self, old: Pod | None, new: Pod) -> None:
        """What it uses of its node; who is not bound yet was counted when that was decided."""
        if new.is_finished:
            if self._table.leave(new.uid):
                self._queue.happened(Wake.ROOM)
        elif new.spec.node_name and self._table.where(new.uid) != new.spec.node_name:
            if needs := _needs(new):
                self._table.occupy(new.uid, NodeName(new.spec.node_name), needs)
                self._arrived()
        elif new.spec.node_name and old and old.metadata.labels != new.metadata.labels and (needs := _needs(new)):
            self._table.relabel(new.uid, needs)
            self._arrived()
            self._queue.happened(Wake.ROOM)

    def _was_bound(self, pod: Pod) -> bool:
        """It has a node by our own writing, of which this news is older."""
        return not pod.spec.node_name and self._table.where(pod.uid) is not None

    def _is_waiting(self, pod: Pod) -> bool:
        spec = pod.spec
        if pod.metadata.is_deleting or pod.is_finished:
            return False
        is_ours = spec.scheduler_name in self._settings.names
        if spec.node_name:
            return (is_ours or self._settings.all_placed) and self._lacks_claims(pod)
        return is_ours and not spec.scheduling_gates

    def _lacks_claims(self, pod: Pod) -> bool:
        """Whether it was put on a node without somebody seeing to its claims."""
        if not pod.spec.resource_claims or pod.uid in self._binding:
            return False
        claims = claim_checks.resolve(pod, self._book.get)
        if isinstance(claims, str) or any(claim.status.allocation is None for claim in claims):
            return True
        return bool(self._lost(pod))

    def _lost(self, pod: Pod) -> list[ResourceClaim]:
        """Return the claims that keep a pod from starting on its node because their drivers and slices are gone.

        A claim that other pods share is not among them, because it cannot be deallocated for one of them."""
        node = self._informers.nodes.get(pod.spec.node_name) if pod.spec.node_name else None
        if not gone_drivers(node) or pod.has_started:  # nearly always: every change of a pod comes by here
            return []
        claims = claim_checks.resolve(pod, self._book.get)
        return [
            claim
            for claim in (claims if not isinstance(claims, str) else ())
            if claim_checks.is_lost(claim, node, self._tracker.has_pool)
            and all(each.uid == pod.uid for each in claim.status.reserved_for)
        ]

    def _claim_changed(self, change: Changed[ResourceClaim]) -> None:
        self._conditions.changed(change.key)
        if news.matters(change):
            self._landed(change.key)
        if news.lost_devices(change) or news.lost_consumers(change):
            self._see_to_those_placed(change.key)

    def _see_to_those_placed(self, claim: ClaimKey) -> None:
        """Pods that were put on a node by somebody else had nothing to wait for as long as the claim was allocated."""
        for pod in self._informers.pods.by_index(BY_CLAIM, "/".join(claim)):
            self._see_to_placed(pod)

    def _see_to_placed(self, pod: Pod) -> None:
        """Put a pod that has a node into the queue if its claims need devices."""
        if pod.spec.node_name and pod.uid not in self._queue and self._is_waiting(pod):
            self._pods[pod.uid] = pod
            self._queue.put(pod.uid, pod.spec.priority or 0)

    def _landed(self, claim: ClaimKey) -> None:
        """Those who wait for the claim have a turn."""
        for pod in self._informers.pods.by_index(BY_CLAIM, "/".join(claim)):
            if pod.uid in self._queue and pod.uid not in self._binding and pod.uid not in self._resting:
                self._queue.wake(pod.uid)

    def _node_changed(self, change: Changed[Node]) -> None:
        self._devices.when_idle(partial(self._see_node, change))
        if gone_drivers(change.new) - gone_drivers(change.old):  # their slices may have gone before
            self._see_to_those_on(change.key[1])

    def _see_node(self, change: Changed[Node]) -> None:
        if change.new is None:
            self._table.remove(NodeName(change.key[1]))
            return self._taken()
        try:
            changed = self._table.put(change.new)
        except InvalidInput as e:
            self._table.remove(NodeName(change.key[1]))
            log.warning("node left out", extra=facts(node=change.key[1], err=e))
            return
        if changed:
            self._queue.happened(Wake.NODES)

    def _namespace_changed(self, change: Changed[Namespace]) -> None:
        """Who is meant by its labels may be others now."""
        if (
            change.old is not None
            and change.new is not None
            and change.old.metadata.labels != change.new.metadata.labels
        ):
            self._arrived()
            self._queue.happened(Wake.ROOM)

    def _namespace_labels(self, name: str) -> Mapping[str, str]:
        found = self._informers.namespaces.get(name)
        return found.metadata.labels if found else {}

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        self._devices.see_slice(old, new)
        self._queue.happened(Wake.DEVICES)

    def _slice_removed(self, slice_: ResourceSlice) -> None:
        if slice_.spec.node_name:
            self._see_to_those_on(slice_.spec.node_name)

    def _see_to_those_on(self, node: str) -> None:
        for pod in self._informers.pods.by_index(BY_NODE, node):
            self._see_to_placed(pod)

    def _class_changed(self, change: Changed[DeviceClass]) -> None:
        self._classes = None
        self._devices.see_class(change.old, change.new)
        self._queue.happened(Wake.DEVICES)

    def _extended_classes(self) -> Classes:
        if self._classes is None:
            self._classes = extended_resources.classes_by_resource(self._informers.classes.all())
        return self._classes


def _needs(pod: Pod) -> PodNeeds | None:
    """None if nobody can read what a pod says that has a node."""
    try:
        return fit.needs_of(pod)
    except InvalidInput as e:
        log.warning("pod not counted", extra=facts(pod=_name(pod), err=e))
        return None


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.name}"
