"""A decision becomes true: claims are written, devices get ready, the pod is bound.

    reserve claims ─▶ compare with others ─▶ wait for devices that have to be attached first ─▶ bind the pod
         └──────────────────────── anything fails: give the claims back ───────────────────────┘

A crash between two of these leaves claims that are reserved for a pod without a node: the next attempt finds them, and
with them the node where the pod has to go. If the answer to the binding was lost the pod is read until it is known
what became of it; before that nothing is taken back. Whoever is cancelled writes nothing more: another may lead by now.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import anyio

from devlet.cluster.client import Cluster, DeleteOptions, MergePatch, Preconditions
from devlet.control.claim_writes import ClaimWriter
from devlet.control.scheduler.binding_conditions import BindingConditions
from devlet.control.scheduler.claim_book import ClaimBook, ClaimKey
from devlet.control.scheduler.extended_resources import ExtendedClaim
from devlet.control.scheduler.metrics import SchedulerMetrics
from devlet.control.scheduler.overlap_check import OverlapCheck
from devlet.control.scheduler.placing import Assignment, Granted
from devlet.control.scheduler.settings import Settings
from devlet.control.scheduler.subject import Subject
from devlet.errors import DevletError, NotFound
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.objects.claims.from_template import DELETE_PROTECTION
from devlet.objects.documents import Document, view
from devlet.objects.kinds import PODS, RESOURCE_CLAIMS
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod

__all__ = ["Binder", "disown_claim", "remove_claim"]

log = logging.getLogger(__name__)

_NO_CLAIM: Final = {"extendedResourceClaimStatus": None}


@dataclass(slots=True)
class _Written:
    """What there is to take back: claims that are reserved, whether their devices go with the last who uses them, and a
    claim made here. Devices that somebody else gave to a claim that nobody used stay."""

    reserved: list[tuple[ResourceClaim, bool]] = field(default_factory=list)
    made: ResourceClaim | None = None
    is_bound: bool = False  # the pod is, by somebody else


class Binder:
    """Claims that are in flight stay so until they are written or given back. `at_once` pods are written about at the
    same time; who waits for devices is not one of them."""

    def __init__(
        self,
        cluster: Cluster,
        book: ClaimBook,
        writer: ClaimWriter,
        conditions: BindingConditions,
        overlaps: OverlapCheck,
        metrics: SchedulerMetrics,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._cluster = cluster
        self._book = book
        self._writer = writer
        self._conditions = conditions
        self._overlaps = overlaps
        self._metrics = metrics
        self._clock = clock
        self._retry = settings.retry
        self._undo_timeout = settings.undo_timeout
        # A limiter would do the same, for a fiftieth of what a pod costs.
        self._turns = anyio.Semaphore(settings.at_once, fast_acquire=True)

    async def bind(self, subject: Subject, assignment: Assignment) -> None:
        """Raises DevletError, and then nothing of it is left, as far as the cluster could be reached."""
        written = _Written()
        try:
            async with self._turns:
                if not subject.node:
                    self._overlaps.compare(granted.key for granted in assignment.granted)
                await self._write_claims(subject, assignment, written)
            own = await self._compared(subject, written)
            await self._conditions.met(subject.pod, [claim for claim, _ in written.reserved] + subject.reserved)
            if not subject.node:
                async with self._turns:
                    self._overlaps.compare(own)  # again: others may have written while devices were attached
                    await self._bind(subject.pod, assignment.node, written)
        except DevletError:
            if not written.is_bound:
                with anyio.move_on_after(self._undo_timeout):
                    await self._take_back(subject.pod, written)
            raise
        finally:
            for granted in assignment.granted:
                for key in (granted.key, *([_key(written.made)] if written.made else [])):
                    self._book.drop(key, granted.results)

    # Claims

    async def _write_claims(self, subject: Subject, assignment: Assignment, written: _Written) -> None:
        work: list[tuple[ResourceClaim, Granted | None]] = [(claim, None) for claim in subject.unreserved]
        extended = assignment.extended
        if extended is None and subject.pod.status.extended_resource_claim_status and not subject.node:
            await self._tell(subject.pod, {"metadata": {"uid": subject.pod.uid}, "status": _NO_CLAIM})
        for granted in assignment.granted:
            if extended is not None and granted.claim is extended.claim:
                written.made = await self._make(subject.pod, extended, granted)
                work.append((written.made, granted))
                await self._tell(subject.pod, extended.pod_status(subject.pod, written.made.name))
            else:
                work.append((granted.claim, granted))
        if len(work) == 1:
            return await self._reserve(subject.pod, *work[0], written)
        async with anyio.create_task_group() as tasks:
            problems: list[DevletError] = []
            for claim, grant in work:
                tasks.start_soon(self._try_reserve, subject.pod, claim, grant, written, problems)
        if problems:
            raise problems[0]

    async def _try_reserve(
        self,
        pod: Pod,
        claim: ResourceClaim,
        granted: Granted | None,
        written: _Written,
        problems: list[DevletError],
    ) -> None:
        try:
            await self._reserve(pod, claim, granted, written)
        except DevletError as e:
            problems.append(e)

    async def _reserve(self, pod: Pod, claim: ResourceClaim, granted: Granted | None, written: _Written) -> None:
        with_devices = granted is not None or bool(claim.status.reserved_for)
        if granted is not None:
            answer = await self._writer.allocate(claim, pod, granted.allocation)
        else:
            answer = await self._writer.join(claim, pod)
        claim = self._book.read(answer) if answer is not None else self._book.get(*_key(claim)) or claim
        if granted is not None:
            self._book.drop(_key(claim), granted.results)
        written.reserved.append((claim, with_devices))

    async def _compared(self, subject: Subject, written: _Written) -> list[ClaimKey]:
        """Return the claims of the pod. Raise Overlapping if another claim was allocated one of their devices.

        For a pod that has its node already, return none: the node may have prepared the claims, so they cannot be taken
        back. The node refuses to prepare a device that is prepared for another claim."""
        if subject.node:
            return []
        claims = [claim for claim, _ in written.reserved] + subject.reserved
        await self._overlaps.seen(claims)
        own = list(map(_key, claims))
        self._overlaps.compare(own)
        return own

    async def _make(self, pod: Pod, extended: ExtendedClaim, granted: Granted) -> ResourceClaim:
        """The claim for extended resources: from now on it has what was given to it before it had a name."""
        namespace, document = pod.metadata.namespace, extended.document(pod)
        try:
            made = view(ResourceClaim, await self._cluster.create(RESOURCE_CLAIMS, document, namespace))
        except DevletError:
            self._metrics.made_claim("failure")
            raise
        self._metrics.made_claim("success")
        self._book.reserve(_key(made), granted.results)
        self._book.drop(granted.key, granted.results)
        return made

    async def _tell(self, pod: Pod, patch: Document) -> None:
        await self._cluster.patch(PODS, pod.name, MergePatch(patch), pod.metadata.namespace, subresource="status")

    async def _take_back(self, pod: Pod, written: _Written) -> None:
        for claim, with_devices in written.reserved:
            try:
                answer = await self._writer.give_back(claim, pod, deallocate=with_devices)
            except NotFound:
                continue
            except DevletError as e:
                log.warning("claim not given back", extra=facts(claim=claim.name, pod=pod.name, err=e))
                continue
            if answer is not None:
                self._book.read(answer)
        if written.made is not None:
            try:
                await remove_claim(self._cluster, written.made, self._book.read)
            except DevletError as e:
                log.warning("claim not removed", extra=facts(claim=written.made.name, pod=pod.name, err=e))

    # The pod

    async def _bind(self, pod: Pod, node: str, written: _Written) -> None:
        metadata = pod.metadata
        binding: Document = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            await self._cluster.create(PODS, binding, metadata.namespace, name=metadata.name, subresource="binding")
        except DevletError:
            found = await self._where(pod)
            written.is_bound = bool(found)
            if found != node:
                raise

    async def _where(self, pod: Pod) -> str:
        """Its node, empty if it has none: an answer that was lost on the way looks like a conflict when it is asked for
        again. Returns only when it is known."""
        for delay in self._retry.delays(random.random):
            try:
                found = await self._cluster.get(PODS, pod.metadata.name, pod.metadata.namespace)
            except NotFound:
                return ""
            except DevletError as e:
                log.warning("fate of a binding not known", extra=facts(pod=pod.name, err=e, delay=delay))
                await self._clock.sleep(delay)
            else:
                return str(found["spec"].get("nodeName") or "") if found["metadata"]["uid"] == pod.uid else ""
        raise AssertionError("unreachable")


async def disown_claim(cluster: Cluster, pod: Pod) -> None:
    """The pod has no claim for extended resources any more. Raises Conflict if it is another by now than the one that
    we know: it may have been bound, and have begun to use the claim."""
    guard = {"uid": pod.uid, "resourceVersion": pod.metadata.resource_version}
    patch = MergePatch({"metadata": guard, "status": _NO_CLAIM})
    await cluster.patch(PODS, pod.name, patch, pod.metadata.namespace, subresource="status")


async def remove_claim(cluster: Cluster, claim: ResourceClaim, answered: Callable[[Document], object]) -> None:
    """A claim for extended resources that nobody uses: without devices and finalizer, then deleted."""
    metadata = claim.metadata
    options = DeleteOptions(preconditions=Preconditions(uid=metadata.uid))
    left = [each for each in metadata.finalizers if each != DELETE_PROTECTION]
    free = {"metadata": {"uid": metadata.uid}, "status": {"allocation": None, "reservedFor": None, "devices": None}}
    loose = {"metadata": {"uid": metadata.uid, "finalizers": left or None}}
    try:
        answered(
            await cluster.patch(
                RESOURCE_CLAIMS, metadata.name, MergePatch(free), metadata.namespace, subresource="status"
            )
        )
        await cluster.patch(RESOURCE_CLAIMS, metadata.name, MergePatch(loose), metadata.namespace)
        await cluster.delete(RESOURCE_CLAIMS, metadata.name, metadata.namespace, options)
    except NotFound:
        pass


def _key(claim: ResourceClaim) -> ClaimKey:
    return claim.metadata.namespace, claim.metadata.name
