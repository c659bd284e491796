"""A node whose claims the test gives out. What devlet does with them is in tests/flows."""

from pathlib import Path

import pytest

from devlet.errors import NotFound
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.node_process import NODE
from tests.support.claim_node import CLAIMS, ClaimNode, claim_pod, container, given, on_node

pytestmark = [pytest.mark.anyio, pytest.mark.long]

SHARE = "6f0b1ef0-7c5c-4b1a-9a2c-2c5f2ab7b1b0"


def test_pods_and_devices_are_as_the_api_has_them() -> None:
    assert given("gpu.example.com", share=SHARE) == {
        "request": "req",
        "driver": "gpu.example.com",
        "pool": "pool",
        "device": "",
        "shareID": SHARE,
    }
    document = claim_pod("train", "a", run_for="1s")
    assert "nodeName" not in document["spec"]
    assert on_node(document)["spec"]["nodeName"] == NODE
    assert document["spec"]["resourceClaims"] == [{"name": "a", "resourceClaimName": "a"}]
    assert document["spec"]["containers"] == [container("main", ["a"])]
    assert container("other", ["a"], b="req")["resources"]["claims"] == [{"name": "a"}, {"name": "b", "request": "req"}]


async def test_claims_are_made_given_out_used_and_taken_back(root: Path) -> None:
    async with ClaimNode(root) as node, FakeDraDriver(root) as gpu:
        await node.until_connected(gpu)
        document = await node.run_pod("train", gpu.name)
        [uid] = gpu.prepared
        assert await node.environment("train") == {"CLAIM_train": uid}
        assert list(await node.containers("train")) == ["main"]
        assert (await node.prepared())["train"]["state"] == "Prepared"
        assert node.claim_checkpoint()["train"].pods == frozenset({document["metadata"]["uid"]})
        assert await node.failures("train") == []
        await node.finish("train")
        await node.until_phase("train", "Succeeded")
        await node.until_forgotten("train")
        await node.allocate("train")
        assert "allocation" not in (await node.call("GET", f"{CLAIMS}/train"))["status"]
        await node.ask_to_delete("train", force=True)
        await node.until_gone("train")
        assert await node.slices() == {}
        await gpu.stop()
        await node.until_missing(gpu)


async def test_a_claim_has_the_requests_of_its_devices_and_may_be_made_for_a_pod(root: Path) -> None:
    async with ClaimNode(root) as node, FakeDraDriver(root) as gpu:
        document = claim_pod("train", "one", "none")
        for entry in document["spec"]["resourceClaims"]:
            entry.update(resourceClaimName=None, resourceClaimTemplateName="any")
        results = [
            given(gpu.name, "dev-0", "a"),
            given(gpu.name, "dev-1", "b/big"),
            given(gpu.name, "dev-2", "b/small"),
        ]
        gpu.handler = node.allocated(gpu.name)
        uid = await node.add_pod(document, {"one": results})
        made = await node.call("GET", f"{CLAIMS}/train-one")
        assert made["metadata"]["ownerReferences"][0]["uid"] == uid
        assert made["status"]["reservedFor"] == [{"resource": "pods", "name": "train", "uid": uid}]
        first, second = made["spec"]["devices"]["requests"]
        assert (first["name"], second["name"]) == ("a", "b")
        assert [sub["name"] for sub in second["firstAvailable"]] == ["big", "small"]
        pod = await node.until_phase("train", "Running")
        assert pod["status"]["resourceClaimStatuses"] == [
            {"name": "one", "resourceClaimName": "train-one"},
            {"name": "none"},
        ]


async def test_what_a_pod_waits_for_is_shown(root: Path) -> None:
    async with ClaimNode(root) as node:
        await node.add_claim("train")
        await node.create(on_node(claim_pod("train", "train")))
        text = await node.until_failed("train", "not allocated")
        assert await node.failures("train") == [text]
        with pytest.raises(NotFound):
            await node.reserve("nobody", await node.pod("train") or {})
