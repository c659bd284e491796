"""Read the claims to prepare from the API and check them: a driver never relies on the node's request alone.

Servers from 1.31 on are supported. The driver uses the newest API version that the server has, and remembers it. A
server may be upgraded while the driver runs, so the driver tries all versions before it reports a claim as missing.
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
        """Return the claims by UID, or the error of each claim that cannot be prepared."""
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
