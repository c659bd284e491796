"""The informers that the control loops share."""

from pathlib import Path

import pytest

from devlet.cluster.store.store import open_store
from devlet.control.informers import BY_CLAIM, BY_CONSUMER, BY_NODE, BY_OWNER, BY_TEMPLATE, Informers
from devlet.objects import kinds
from devlet.objects.documents import Document

pytestmark = pytest.mark.anyio


def a_pod(**spec: object) -> Document:
    container = {"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}
    return {
        "metadata": {"name": "train"},
        "spec": {"containers": [container], "resourceClaims": [{"name": "gpu", **spec}], "nodeName": "n1"},
    }


async def test_pods_are_found_by_claim_template_and_node(root: Path) -> None:
    async with open_store(root / "db") as store:
        await store.create(kinds.PODS, a_pod(resourceClaimTemplateName="one-gpu"), "default")
        informers = Informers(store)
        async with informers.running():
            assert [pod.name for pod in informers.pods.by_index(BY_TEMPLATE, "default/one-gpu")] == ["train"]
            assert [pod.name for pod in informers.pods.by_index(BY_NODE, "n1")] == ["train"]
            assert informers.pods.by_index(BY_CLAIM, "default/one-gpu") == []


async def test_claims_are_found_by_owner_and_consumer(root: Path) -> None:
    async with open_store(root / "db") as store:
        pod = await store.create(kinds.PODS, a_pod(resourceClaimName="c"), "default")
        uid = pod["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": uid, "controller": True}
        claim = {
            "metadata": {"name": "c", "ownerReferences": [owner]},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "x"}}]}},
        }
        made = await store.create(kinds.RESOURCE_CLAIMS, claim, "default")
        reserved = [{"resource": "pods", "name": "train", "uid": uid}]
        await store.update(
            kinds.RESOURCE_CLAIMS,
            {**made, "status": {"allocation": {"devices": {}}, "reservedFor": reserved}},
            subresource="status",
        )
        informers = Informers(store)
        async with informers.running():
            assert [found.name for found in informers.claims.by_index(BY_OWNER, uid)] == ["c"]
            assert [found.name for found in informers.claims.by_index(BY_CONSUMER, uid)] == ["c"]
            assert [pod.name for pod in informers.pods.by_index(BY_CLAIM, "default/c")] == ["train"]
