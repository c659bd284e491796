"""Check the result of a scheduling benchmark: every pod is bound, with a claim of its own, on a device of its node that
no other pod has."""

from devlet.cluster.client import Cluster
from devlet.objects.documents import Document
from devlet.objects.kinds import PODS, RESOURCE_CLAIMS


async def wrong(cluster: Cluster, namespaces: tuple[str, ...]) -> list[str]:
    """Return a text for each problem."""
    found: list[str] = []
    holders: dict[tuple[str, str, str], str] = {}
    for namespace in namespaces:
        claims = (await cluster.list(RESOURCE_CLAIMS, namespace)).items
        by_owner = {owner["uid"]: claim for claim in claims for owner in claim["metadata"].get("ownerReferences", ())}
        pods = (await cluster.list(PODS, namespace)).items
        if len(claims) != len(pods):
            found.append(f"{namespace}: {len(claims)} claims for {len(pods)} pods")
        for pod in pods:
            claim = by_owner.get(pod["metadata"]["uid"], {})
            found += (f"{namespace}/{pod['metadata']['name']}: {text}" for text in _wrong(pod, claim, holders))
    return found


def _wrong(pod: Document, claim: Document, holders: dict[tuple[str, str, str], str]) -> list[str]:
    name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
    told = [one.get("resourceClaimName") for one in pod.get("status", {}).get("resourceClaimStatuses", ())]
    status = claim.get("status") or {}
    results = status.get("allocation", {}).get("devices", {}).get("results", ())
    found = []
    if not node:
        found.append("it is not bound")
    if not claim or told != [claim["metadata"]["name"]]:
        found.append(f"it has the claims {told}")
    if [one["uid"] for one in status.get("reservedFor", ())] != [pod["metadata"]["uid"]]:
        found.append(f"its claim is reserved for {status.get('reservedFor')}")
    if len(results) != 1 or results[0]["pool"] != node:
        found.append(f"it is on {node} and has the devices {results}")
    for one in results:
        device = (one["driver"], one["pool"], one["device"])
        if device in holders:
            found.append(f"{'/'.join(device)} belongs to {holders[device]} too")
        holders[device] = name
    return found
