"""Read claims from the cluster. Containers get devices by what is read here, so it never comes from a cache."""

import msgspec

from devlet.cluster.client import Cluster
from devlet.errors import DevletError, NotFound
from devlet.node.claims.records import ClaimKey
from devlet.node.served import Served
from devlet.objects.conversion import convert
from devlet.objects.documents import Document, view
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.objects.types.claim import ResourceClaim

__all__ = ["ClaimReader"]


class ClaimReader:
    """Reads claims in whichever API version the cluster serves."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._claims = Served(RESOURCE_CLAIMS.kind)

    async def read_claim(self, key: ClaimKey) -> ResourceClaim:
        """Return the claim as v1. Raise NotFound if it does not exist. The error's `name` is the name of the claim, or
        empty if the cluster does not serve claims at all."""
        try:
            document = await self._claims.ask(lambda claims: self._cluster.get(claims, key.name, key.namespace))
        except NotFound as e:
            reason = "it does not exist" if e.name else str(e)
            raise NotFound(f"ResourceClaim {key}: {reason}", resource=RESOURCE_CLAIMS.name, name=e.name) from e
        return _claim(key, document)


def _claim(key: ClaimKey, document: Document) -> ResourceClaim:
    try:
        claim = view(ResourceClaim, convert(document, RESOURCE_CLAIMS.api_version))
    except msgspec.ValidationError as e:
        raise DevletError(f"ResourceClaim {key}: the cluster's answer is malformed: {e}") from e
    if (claim.metadata.namespace, claim.name) != (key.namespace, key.name) or not claim.uid:
        raise DevletError(f"ResourceClaim {key}: the cluster answered with another object")
    return claim
