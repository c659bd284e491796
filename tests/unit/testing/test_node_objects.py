from pathlib import Path

import pytest

from devlet.errors import AlreadyExists, InvalidInput, InvalidObject, NotFound
from devlet.testing.builders import claim, device_class, pod
from devlet.testing.node import Node

pytestmark = pytest.mark.anyio

YAML = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec:
  selectors:
  - cel: {expression: "device.driver == 'gpu.example.com'"}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: training}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {deviceClassName: gpu.example.com}
"""


async def test_yaml_files_and_documents_are_applied_and_applied_again(root: Path) -> None:
    file = root / "objects.yaml"
    file.write_text(YAML)
    async with Node.start(control=False) as node:
        made, _ = await node.apply(YAML)
        again, _ = await node.apply(file)
        assert again["metadata"]["uid"] == made["metadata"]["uid"]
        await node.apply(claim("other"), [pod("a"), pod("b")])
        assert [each["metadata"]["name"] for each in await node.list("ResourceClaim")] == ["other", "training"]
        assert len(await node.list("pods", "default")) == 2
        with pytest.raises(InvalidInput, match=r"Pod: metadata\.name is missing"):
            await node.apply({"apiVersion": "v1", "kind": "Pod"})


async def test_objects_are_made_read_and_deleted_by_kind(root: Path) -> None:
    async with Node.start(control=False) as node:
        await node.create(device_class())
        with pytest.raises(AlreadyExists):
            await node.create_class()
        await node.create_template("t")
        await node.create_claim("c", count=2)
        await node.create_slice(["a"], pool="p")
        assert (await node.get("DeviceClass", "gpu.example.com"))["kind"] == "DeviceClass"
        [found] = await node.list("ResourceSlice")
        assert (found["spec"]["nodeName"], found["spec"]["pool"]["name"]) == (node.name, "p")
        await node.create_pod("p", claim="c", labels={"a": "b"})
        assert await node.list("Pod", labels="a=c") == []
        await node.delete("Pod", "p", now=True)
        with pytest.raises(NotFound):
            await node.get("Pod", "p")


async def test_an_unknown_field_or_kind_is_refused(root: Path) -> None:
    async with Node.start(control=False) as node:
        with pytest.raises((InvalidInput, InvalidObject), match="nonsense"):
            await node.create_pod("p", nonsense=1)
        with pytest.raises(InvalidInput, match="'Gadget' is not a kind"):
            await node.get("Gadget", "g")
        with pytest.raises(NotFound, match="Gadget"):
            await node.apply({"apiVersion": "v1", "kind": "Gadget", "metadata": {"name": "g"}})


async def test_a_failed_wait_for_an_object_shows_what_was_seen(root: Path) -> None:
    async with Node.start(control=False) as node:
        await node.create_claim("c")
        assert (await node.wait_for("ResourceClaim", "c"))["metadata"]["name"] == "c"
        with pytest.raises(AssertionError, match=r"ResourceClaim c: not within 0\.2 s.*'kind': 'ResourceClaim'"):
            await node.wait_for("ResourceClaim", "c", lambda claim: claim["status"].get("allocation"), within=0.2)
        with pytest.raises(AssertionError, match=r"Pod p: not within 0\.2 s; last seen: nothing of that name"):
            await node.wait_for("Pod", "p", within=0.2)
