"""Create the claims of pods from templates, record them in the pod's status, and reserve those of pods with a node.

A claim is created first and recorded then. If the second step fails, the next attempt finds the claim by its owner and
annotation and adopts it, so nothing is created twice. The status is always written with all entries, because apply
removes what it no longer mentions.
"""

import logging

import anyio

from devlet.cluster.client import ApplyPatch, Cluster, WriteOptions
from devlet.cluster.events import WARNING, Recorder
from devlet.control.claim_writes import ClaimWriter
from devlet.control.claims.known_claims import KnownClaims
from devlet.control.claims.metrics import ClaimMetrics
from devlet.control.claims.pod_needs import missing, recorded_name, unreserved
from devlet.control.informers import Informers
from devlet.control.reservations import refusal_of
from devlet.errors import DevletError, InvalidInput, NotFound
from devlet.kit.facts import facts
from devlet.objects.claims.from_template import claim_from_template
from devlet.objects.claims.nodes import unusable_on
from devlet.objects.documents import Document, view
from devlet.objects.kinds import PODS, RESOURCE_CLAIMS
from devlet.objects.pods.claims import is_made_for
from devlet.objects.types.claim import ResourceClaim, ResourceClaimSpec
from devlet.objects.types.pod import Pod, PodResourceClaim

__all__ = ["CREATION_FAILED", "FIELD_MANAGER", "RESERVATION_FAILED", "PodSync"]

log = logging.getLogger(__name__)

FIELD_MANAGER = "ResourceClaimController"
CREATION_FAILED = "FailedResourceClaimCreation"
RESERVATION_FAILED = "FailedResourceClaimReservation"


class PodSync:
    def __init__(
        self,
        cluster: Cluster,
        writer: ClaimWriter,
        informers: Informers,
        claims: KnownClaims,
        recorder: Recorder,
        metrics: ClaimMetrics,
    ) -> None:
        self._cluster = cluster
        self._writer = writer
        self._informers = informers
        self._claims = claims
        self._recorder = recorder
        self._metrics = metrics

    def needs_work(self, pod: Pod) -> bool:
        return bool(pod.spec.resource_claims) and bool(missing(pod, self._claims) or unreserved(pod, self._claims))

    async def sync(self, namespace: str, name: str) -> None:
        pod = self._informers.pods.get(name, namespace)
        if pod is None:
            return
        if entries := missing(pod, self._claims):
            await self._provide(pod, entries)
        for claim in unreserved(pod, self._claims):
            await self._reserve(claim, pod)

    async def _provide(self, pod: Pod, entries: list[PodResourceClaim]) -> None:
        """Record the claims that could be created even if others could not."""
        names: dict[str, str] = {}
        failures: list[DevletError] = []

        async def provide(entry: PodResourceClaim) -> None:
            try:
                names[entry.name] = (await self._claim_for(pod, entry)).name
            except DevletError as e:
                self._warn(pod, CREATION_FAILED, f"PodResourceClaim {entry.name}: {e}")
                failures.append(e)

        if len(entries) == 1:
            await provide(entries[0])
        else:
            async with anyio.create_task_group() as tasks:
                for entry in entries:
                    tasks.start_soon(provide, entry)
        if names:
            await self._record(pod, names)
        if lasting := [e for e in failures if not isinstance(e, _NoTemplate)]:
            raise lasting[0]

    async def _claim_for(self, pod: Pod, entry: PodResourceClaim) -> ResourceClaim:
        if (claim := await self._recorded(pod, entry) or self._claims.made_for(pod, entry.name)) is not None:
            return claim
        if entry.resource_claim_template_name is None:
            raise InvalidInput("neither resourceClaimName nor resourceClaimTemplateName is set")
        template = self._informers.templates.get(entry.resource_claim_template_name, pod.metadata.namespace)
        if template is None:
            raise _NoTemplate(entry.resource_claim_template_name)
        return await self._create(pod, entry, template)

    async def _recorded(self, pod: Pod, entry: PodResourceClaim) -> ResourceClaim | None:
        """Return the claim that the status names, if it exists and only our copy lacks it."""
        name, namespace = recorded_name(pod, entry.name), pod.metadata.namespace
        if name is None or self._claims.get(name, namespace) is not None:
            return None
        try:
            claim = view(ResourceClaim, await self._cluster.get(RESOURCE_CLAIMS, name, namespace))
        except NotFound:
            return None
        return claim if is_made_for(claim, pod) else None

    async def _create(self, pod: Pod, entry: PodResourceClaim, template: Document) -> ResourceClaim:
        document = claim_from_template(template, pod, entry.name)
        requests = view(ResourceClaimSpec, document["spec"]).devices.requests
        try:
            created = await self._cluster.create(
                RESOURCE_CLAIMS, document, pod.metadata.namespace, options=WriteOptions(shaped=True)
            )
        except DevletError as e:
            self._metrics.created(requests, success=False)
            raise _NotMade(f"create ResourceClaim {document['metadata']['generateName']}: {e}") from e
        self._metrics.created(requests, success=True)
        claim = view(ResourceClaim, created)
        self._claims.made(claim)
        log.debug("claim created", extra=facts(pod=_text(pod), claim=claim.name))
        return claim

    async def _record(self, pod: Pod, names: dict[str, str]) -> None:
        known: dict[str, str | None] = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses}
        known |= names
        statuses = [
            {"name": entry.name} | ({"resourceClaimName": name} if (name := known[entry.name]) else {})
            for entry in pod.spec.resource_claims
            if entry.resource_claim_template_name is not None and entry.name in known
        ]
        metadata = {"name": pod.name, "namespace": pod.metadata.namespace, "uid": pod.uid}
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "status": {"resourceClaimStatuses": statuses},
        }
        try:
            await self._cluster.patch(
                PODS,
                pod.name,
                ApplyPatch(document, force=True),
                pod.metadata.namespace,
                subresource="status",
                options=WriteOptions(field_manager=FIELD_MANAGER),
            )
        except NotFound:
            return
        log.debug("claims recorded", extra=facts(pod=_text(pod), claims=sorted(names.values())))

    async def _reserve(self, claim: ResourceClaim, pod: Pod) -> None:
        node = self._informers.nodes.get(pod.spec.node_name)
        unusable = unusable_on(claim, pod.spec.node_name, node.metadata.labels if node else None)
        if reason := unusable or refusal_of(claim):
            return self._warn(pod, RESERVATION_FAILED, reason)
        await self._writer.reserve(claim, pod)
        log.info("claim reserved", extra=facts(pod=_text(pod), claim=claim.name))

    def _warn(self, pod: Pod, reason: str, message: str) -> None:
        self._recorder.record(pod.reference, WARNING, reason, message)


class _NotMade(DevletError):
    """The API refused to create the claim."""


class _NoTemplate(DevletError):
    """The template is missing. This is not retried: when the template is created, its pods are checked."""

    def __init__(self, name: str) -> None:
        missing = f'resourceclaimtemplate.resource.k8s.io "{name}" not found'
        super().__init__(f'resource claim template "{name}": {missing}')


def _text(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.name}"
