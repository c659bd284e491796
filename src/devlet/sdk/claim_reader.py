"""Claims that are to be prepared, read from the API and checked: a driver never acts on what it was merely told.

Servers from 1.31 on are understood: the newest version that the server has is asked for, and remembered. A server may
be upgraded while the driver lives, so the others are asked for before a claim is called missing.
"""

from collections.abc import Sequence

import anyio

from devlet.cluster.client import Cluster
from devlet.errors import Conflict, DevletError, NotFound, Unavailable
from devlet.objects.claims.nodes import unusable_on
from devlet.objects.conversion import convert
from devlet.objects.documents import Document, view
from devlet.objects.kinds import RESOURCE_CLAIMS, Resource
from devlet.objects.types.claim import ResourceClaim
from devlet.sdk.values import Claim, ClaimRef

__all__ = ["ClaimReader", "claim_of"]

_VERSIONS = tuple(Resource(RESOURCE_CLAIMS.kind, version) for version in RESOURCE_CLAIMS.kind.api_versions)
_AT_ONCE = 16


class ClaimReader:
    """Reads claims for a driver on a node. Without a node's name, a claim may be allocated for any node."""

    def __init__(self, cluster: Cluster, driver: str, node: str = "") -> None:
        self._cluster = cluster
        self._driver = driver
        self._node = node
        self._versions: Sequence[Resource] = _VERSIONS

    async def read(self, refs: Sequence[ClaimRef]) -> dict[str, Claim | DevletError]:
        """By UID. An error is the claim's own."""
        found: dict[str, Claim | DevletError] = {}
        limiter = anyio.CapacityLimiter(_AT_ONCE)

        async def one(ref: ClaimRef) -> None:
            async with limiter:
                try:
                    found[ref.uid] = claim_of(await self._get(ref), ref, self._driver, self._node)
                except DevletError as e:
                    found[ref.uid] = e

        async with anyio.create_task_group() as tasks:
            for ref in refs:
                tasks.start_soon(one, ref)
        return found

    async def _get(self, ref: ClaimRef) -> Document:
        for resource in self._versions:
            try:
                document = await self._cluster.get(resource, ref.name, ref.namespace)
            except NotFound:
                continue
            self._versions = (resource, *(each for each in _VERSIONS if each != resource))
            return convert(document, RESOURCE_CLAIMS.api_version)
        raise NotFound(f"claim {ref.namespace}/{ref.name} does not exist", resource="resourceclaims", name=ref.name)


def claim_of(document: Document, ref: ClaimRef, driver: str, node: str = "") -> Claim:
    """Return what the driver has to know of the claim.

    Raises Conflict if the claim has a different UID, and Unavailable if it is not allocated, or not for this node. The
    driver may lack the right to read nodes, so only the node's name is compared with the allocation's selector."""
    claim = view(ResourceClaim, document)
    where = f"claim {ref.namespace}/{ref.name}"
    if claim.uid != ref.uid:
        raise Conflict(f"{where} got replaced: it has UID {claim.uid} now, and {ref.uid} was asked for")
    if (allocation := claim.status.allocation) is None:
        raise Unavailable(f"{where} is not allocated")
    if node and (reason := unusable_on(claim, node, labels=None)):
        raise Unavailable(reason)
    results = tuple(each for each in allocation.devices.results if each.driver == driver)
    configs = tuple(each for each in allocation.devices.config if each.opaque and each.opaque.driver == driver)
    return Claim(ref, results, configs, claim, document)
