"""Carry out a decision: write the claims, wait for their devices, bind the pod.

    reserve claims ─▶ check for overlaps ─▶ wait for devices to be attached ─▶ bind the pod
         └───────────────── anything fails: give the claims back ─────────────────┘

A crash between two steps leaves claims that are reserved for a pod without a node: the next attempt finds them, and
with them the node where the pod has to run. If the answer to the binding was lost, the pod is read until its state is
known, and nothing is undone before. A cancelled task writes nothing more, because another scheduler may lead by then.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import anyio

from devlet.cluster.client import Cluster, DeleteOptions, MergePatch, Preconditions
from devlet.control.claim_writes import ClaimWriter
from devlet.control.scheduler.binding_conditions import BindingConditions
from devlet.control.scheduler.claim_book import ClaimBook
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
from devlet.objects.identifiers import ObjectKey
from devlet.objects.kinds import PODS, RESOURCE_CLAIMS
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod

__all__ = ["Binder", "disown_claim", "remove_claim"]

log = logging.getLogger(__name__)

_NO_CLAIM: Final = {"extendedResourceClaimStatus": None}


@dataclass(slots=True)
class _Written:
    """What to undo if a step fails.

    `reserved` has the claims, each with whether to free its devices with the last consumer: devices that another client
    allocated to an unused claim stay. `created` is the claim for extended resources. `is_bound` means that another
    scheduler has bound the pod, so nothing is undone."""

    reserved: list[tuple[ResourceClaim, bool]] = field(default_factory=list)
    created: ResourceClaim | None = None
    is_bound: bool = False


class Binder:
    """Claims stay in flight until they are written or given back. At most `settings.at_once` pods are written at the
    same time; pods that wait for devices do not count."""

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
        # A CapacityLimiter would do the same, but would take two percent of the time per pod.
        self._slots = anyio.Semaphore(settings.at_once, fast_acquire=True)

    async def bind(self, subject: Subject, assignment: Assignment) -> None:
        """Write the assignment. If that raises DevletError, everything is undone as far as the cluster can be
        reached."""
        written = _Written()
        try:
            async with self._slots:
                if not subject.node:
                    self._overlaps.compare(granted.key for granted in assignment.granted)
                await self._write_claims(subject, assignment, written)
            own = await self._checked(subject, written)
            await self._conditions.met(subject.pod, [claim for claim, _ in written.reserved] + subject.reserved)
            if not subject.node:
                async with self._slots:
                    self._overlaps.compare(own)  # again: other schedulers may have written in the meantime
                    await self._bind(subject.pod, assignment.node, written)
        except DevletError:
            if not written.is_bound:
                with anyio.move_on_after(self._undo_timeout):
                    await self._undo(subject.pod, written)
            raise
        finally:
            for granted in assignment.granted:
                for key in (granted.key, *([_key(written.created)] if written.created else [])):
                    self._book.drop(key, granted.results)

    # Claims

    async def _write_claims(self, subject: Subject, assignment: Assignment, written: _Written) -> None:
        work: list[tuple[ResourceClaim, Granted | None]] = [(claim, None) for claim in subject.unreserved]
        extended = assignment.extended
        if extended is None and subject.pod.status.extended_resource_claim_status and not subject.node:
            await self._patch_status(subject.pod, {"metadata": {"uid": subject.pod.uid}, "status": _NO_CLAIM})
        for granted in assignment.granted:
            if extended is not None and granted.claim is extended.claim:
                written.created = await self._create(subject.pod, extended, granted)
                work.append((written.created, granted))
                await self._patch_status(subject.pod, extended.pod_status(subject.pod, written.created.name))
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
        frees_devices = granted is not None or bool(claim.status.reserved_for)
        stored = await self._writer.reserve(claim, pod, granted.allocation if granted is not None else None)
        if granted is not None:
            self._book.drop(_key(claim), granted.results)
        written.reserved.append((stored, frees_devices))

    async def _checked(self, subject: Subject, written: _Written) -> list[ObjectKey]:
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

    async def _create(self, pod: Pod, extended: ExtendedClaim, granted: Granted) -> ResourceClaim:
        """Create the claim for extended resources. It takes over the devices that were held under a provisional key."""
        namespace, document = pod.metadata.namespace, extended.document(pod)
        try:
            created = view(ResourceClaim, await self._cluster.create(RESOURCE_CLAIMS, document, namespace))
        except DevletError:
            self._metrics.made_claim("failure")
            raise
        self._metrics.made_claim("success")
        self._book.reserve(_key(created), granted.results)
        self._book.drop(granted.key, granted.results)
        return created

    async def _patch_status(self, pod: Pod, patch: Document) -> None:
        await self._cluster.patch(PODS, pod.name, MergePatch(patch), pod.metadata.namespace, subresource="status")

    async def _undo(self, pod: Pod, written: _Written) -> None:
        for claim, frees_devices in written.reserved:
            try:
                await self._writer.give_back(claim, pod, deallocate=frees_devices)
            except NotFound:
                pass
            except DevletError as e:
                log.warning("claim not given back", extra=facts(claim=claim.name, pod=pod.name, err=e))
        if written.created is not None:
            try:
                await remove_claim(self._cluster, written.created, self._book.read)
            except DevletError as e:
                log.warning("claim not removed", extra=facts(claim=written.created.name, pod=pod.name, err=e))

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
            found = await self._node_of(pod)
            written.is_bound = bool(found)
            if found != node:
                raise

    async def _node_of(self, pod: Pod) -> str:
        """Return the node that the pod has now, empty if none, as soon as that is known.

        The binding may have failed only because its answer was lost: a repeated request then gets a conflict."""
        for delay in self._retry.delays(random.random):
            try:
                found = await self._cluster.get(PODS, pod.metadata.name, pod.metadata.namespace)
            except NotFound:
                return ""
            except DevletError as e:
                log.warning("outcome of a binding not known", extra=facts(pod=pod.name, err=e, delay=delay))
                await self._clock.sleep(delay)
            else:
                return str(found["spec"].get("nodeName") or "") if found["metadata"]["uid"] == pod.uid else ""
        raise AssertionError("unreachable")


async def disown_claim(cluster: Cluster, pod: Pod) -> None:
    """Remove the claim for extended resources from the pod's status. Raises Conflict if the pod has changed: it may
    have been bound, and use the claim."""
    guard = {"uid": pod.uid, "resourceVersion": pod.metadata.resource_version}
    patch = MergePatch({"metadata": guard, "status": _NO_CLAIM})
    await cluster.patch(PODS, pod.name, patch, pod.metadata.namespace, subresource="status")


async def remove_claim(cluster: Cluster, claim: ResourceClaim, decode: Callable[[Document], object]) -> None:
    """Deallocate and delete an unused claim for extended resources. `decode` reads the deallocated claim."""
    metadata = claim.metadata
    options = DeleteOptions(preconditions=Preconditions(uid=metadata.uid))
    left = [each for each in metadata.finalizers if each != DELETE_PROTECTION]
    free = {"metadata": {"uid": metadata.uid}, "status": {"allocation": None, "reservedFor": None, "devices": None}}
    unprotected = {"metadata": {"uid": metadata.uid, "finalizers": left or None}}
    try:
        decode(
            await cluster.patch(
                RESOURCE_CLAIMS, metadata.name, MergePatch(free), metadata.namespace, subresource="status"
            )
        )
        await cluster.patch(RESOURCE_CLAIMS, metadata.name, MergePatch(unprotected), metadata.namespace)
        await cluster.delete(RESOURCE_CLAIMS, metadata.name, metadata.namespace, options)
    except NotFound:
        pass


def _key(claim: ResourceClaim) -> ObjectKey:
    return claim.metadata.namespace, claim.metadata.name
