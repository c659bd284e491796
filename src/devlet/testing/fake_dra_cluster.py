"""The API calls of a fake DRA driver: publish its devices, and read which of them were allocated to a claim.

    await publish(cluster, "gpu.example.com", "node-1", 4)       # dev-0 … dev-3, in a pool named like the node
    driver.handler = allocated(cluster, "gpu.example.com")       # prepare the allocated devices

Nothing is watched: a slice that is deleted stays deleted until `publish` is called again.
"""

from collections.abc import Awaitable, Callable, Sequence

from devlet.cluster.client import Cluster
from devlet.errors import DevletError, NotFound
from devlet.objects.documents import Document, view
from devlet.objects.kinds import RESOURCE_CLAIMS, RESOURCE_SLICES
from devlet.objects.types.claim import PreparedDevice, ResourceClaim
from devlet.plugins.dra import ClaimProblem, ClaimRef

__all__ = ["allocated", "numbered", "publish", "slice_of"]


def numbered(count: int) -> list[Document]:
    """Return devices dev-0, dev-1, …, which have only a name."""
    return [{"name": f"dev-{number}"} for number in range(count)]


def slice_of(
    driver: str, node_name: str, devices: int | Sequence[Document], *, pool: str = "", node_uid: str = ""
) -> Document:
    """Return the only slice of a pool. With the node's UID the slice belongs to the node, and is deleted with it."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": node_uid, "controller": True}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name}-{driver}", **({"ownerReferences": [owner]} if node_uid else {})},
        "spec": {
            "driver": driver,
            "nodeName": node_name,
            "pool": {"name": pool or node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": numbered(devices) if isinstance(devices, int) else list(devices),
        },
    }


async def publish(
    cluster: Cluster,
    driver: str,
    node_name: str,
    devices: int | Sequence[Document],
    *,
    pool: str = "",
    node_uid: str = "",
) -> Document:
    """Publish a slice, and return it as it is stored. A slice of the same name is replaced, in the next generation of
    the pool."""
    wanted = slice_of(driver, node_name, devices, pool=pool, node_uid=node_uid)
    try:
        old = await cluster.get(RESOURCE_SLICES, wanted["metadata"]["name"])
    except NotFound:
        return await cluster.create(RESOURCE_SLICES, wanted)
    wanted["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    wanted["spec"]["pool"]["generation"] = old["spec"]["pool"]["generation"] + 1
    return await cluster.update(RESOURCE_SLICES, wanted)


def allocated(
    cluster: Cluster, driver: str
) -> Callable[[ClaimRef], Awaitable[Sequence[PreparedDevice] | ClaimProblem]]:
    """Return a function for `FakeDraDriver.handler`: one device for each of this driver's results in the claim's
    allocation."""

    async def handle(asked: ClaimRef) -> Sequence[PreparedDevice] | ClaimProblem:
        try:
            document = await cluster.get(RESOURCE_CLAIMS, asked.name, asked.namespace)
        except DevletError as e:
            return ClaimProblem(str(e))
        if document["metadata"]["uid"] != asked.uid:
            return ClaimProblem(f"claim {asked.name}: has UID {document['metadata']['uid']} by now, not {asked.uid}")
        return _devices(document, driver)

    return handle


def _devices(document: Document, driver: str) -> list[PreparedDevice] | ClaimProblem:
    claim = view(ResourceClaim, document)
    if claim.status.allocation is None:
        return ClaimProblem(f"claim {claim.metadata.name}: is not allocated")
    return [
        PreparedDevice(result.pool, result.device, share=result.share_id, requests=(result.request,))
        for result in claim.status.allocation.devices.results
        if result.driver == driver
    ]
