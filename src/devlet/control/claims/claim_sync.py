"""Release claims whose consumers are done, and delete those that no pod can use any more.

Each write names the version that it is based on. If the claim is reserved in the meantime, the write fails with a
conflict and the claim is checked again.
"""

import logging

from devlet.cluster.client import Cluster, DeleteOptions, MergePatch, Preconditions
from devlet.control.claims import release
from devlet.control.claims.pod_needs import Claims, is_surplus
from devlet.control.claims.pod_outcomes import PodOutcome, PodOutcomes
from devlet.control.claims.release import Release
from devlet.control.informers import Informers
from devlet.control.reservations import consumer_document
from devlet.errors import NotFound
from devlet.kit.facts import facts
from devlet.objects.claims.from_template import DELETE_PROTECTION
from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.objects.types.claim import ConsumerReference, ResourceClaim

__all__ = ["ClaimSync"]

log = logging.getLogger(__name__)


class ClaimSync:
    def __init__(self, cluster: Cluster, informers: Informers, outcomes: PodOutcomes, claims: Claims) -> None:
        self._cluster = cluster
        self._informers = informers
        self._outcomes = outcomes
        self._claims = claims

    def needs_work(self, claim: ResourceClaim) -> bool:
        """Return True if `sync` may have something to do. Does not ask the API."""
        outcomes = self._known(claim)
        return PodOutcome.UNKNOWN in outcomes.values() or self._plan(claim, outcomes) is not None

    async def sync(self, namespace: str, name: str) -> None:
        claim = self._informers.claims.get(name, namespace)
        if claim is None:
            return
        outcomes = self._known(claim)
        for uid in [uid for uid, outcome in outcomes.items() if outcome is PodOutcome.UNKNOWN]:
            outcomes[uid] = await self._outcomes.find(namespace, _pod_names(claim)[uid], uid)
        if (plan := self._plan(claim, outcomes)) is not None:
            try:
                await self._carry_out(claim, plan)
            except NotFound:
                log.debug("claim already gone", extra=facts(claim=f"{namespace}/{name}"))

    def _known(self, claim: ResourceClaim) -> dict[str, PodOutcome]:
        """Return the known outcomes. An owner without a pod of its name is left to the garbage collector."""
        namespace, names = claim.metadata.namespace, _pod_names(claim)
        outcomes = {uid: self._outcomes.known(namespace, name, uid) for uid, name in names.items()}
        owner = release.owning_pod(claim)
        consumers = {consumer.uid for consumer in claim.status.reserved_for}
        if owner and owner.uid not in consumers and outcomes[owner.uid] is PodOutcome.UNKNOWN:
            if self._informers.pods.get(owner.name, namespace) is None:
                del outcomes[owner.uid]
        return outcomes

    def _plan(self, claim: ResourceClaim, outcomes: dict[str, PodOutcome]) -> Release | None:
        owner = release.owning_pod(claim)
        pod = self._informers.pods.get(owner.name, claim.metadata.namespace) if owner else None
        return release.plan(claim, outcomes, surplus=pod is not None and is_surplus(claim, pod, self._claims))

    async def _carry_out(self, claim: ResourceClaim, plan: Release) -> None:
        version = claim.metadata.resource_version
        if plan.kept is not None:
            version = _version(await self._write_status(claim, plan.kept, deallocate=plan.deallocate))
        left = await self._delete(claim, version) if plan.delete else version
        if plan.unprotect and left:
            await self._unprotect(claim, left)
        where = f"{claim.metadata.namespace}/{claim.name}"
        log.info("claim released", extra=facts(claim=where, deallocated=plan.deallocate, deleted=plan.delete))

    async def _write_status(
        self, claim: ResourceClaim, kept: tuple[ConsumerReference, ...], *, deallocate: bool
    ) -> Document:
        status: Document = {"reservedFor": [consumer_document(each) for each in kept] or None}
        if deallocate:
            status["allocation"] = None
        patch = MergePatch({"metadata": _guard(claim, claim.metadata.resource_version), "status": status})
        return await self._cluster.patch(
            RESOURCE_CLAIMS, claim.name, patch, claim.metadata.namespace, subresource="status"
        )

    async def _delete(self, claim: ResourceClaim, version: str) -> str | None:
        """Delete the claim. Return its version if finalizers keep it, None if it is gone."""
        options = DeleteOptions(preconditions=Preconditions(claim.uid, version))
        left = await self._cluster.delete(RESOURCE_CLAIMS, claim.name, claim.metadata.namespace, options)
        return _version(left) if left["kind"] == RESOURCE_CLAIMS.kind.kind else None

    async def _unprotect(self, claim: ResourceClaim, version: str) -> None:
        others = [name for name in claim.metadata.finalizers if name != DELETE_PROTECTION]
        patch = MergePatch({"metadata": {**_guard(claim, version), "finalizers": others or None}})
        await self._cluster.patch(RESOURCE_CLAIMS, claim.name, patch, claim.metadata.namespace)


def _pod_names(claim: ResourceClaim) -> dict[str, str]:
    """Return the names of the consumers and the owner, by UID."""
    names = {consumer.uid: consumer.name for consumer in claim.status.reserved_for if release.is_pod(consumer)}
    owner = release.owning_pod(claim)
    return names | ({owner.uid: owner.name} if owner else {})


def _guard(claim: ResourceClaim, version: str) -> Document:
    return {"uid": claim.uid, "resourceVersion": version}


def _version(document: Document) -> str:
    version: str = document["metadata"]["resourceVersion"]
    return version
