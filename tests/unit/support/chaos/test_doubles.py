from functools import partial
from pathlib import Path

import anyio
import pytest

from devlet.cluster.client import MergePatch
from devlet.cluster.store.store import open_store
from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.state.device_checkpoint import Encoder, Entry
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.node_process import NodeProcess, pod
from devlet.testing.waiting import until
from devlet.wire.podresources_v1 import api_pb2 as pb
from tests.support.chaos.doubles import Doubles, in_checkpoint, in_claims, in_pod_resources, in_specs
from tests.support.workloads import claim

UID = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaa"


def allocation(device: str, **more: object) -> Document:
    result = {"request": "gpu", "driver": "d.example.com", "pool": "n1", "device": device, **more}
    return {"allocation": {"devices": {"results": [result]}}}


def held(name: str, device: str, **more: object) -> Document:
    return {"metadata": {"name": name, "uid": f"u-{name}"}, "status": allocation(device, **more)}


def test_a_device_of_two_claims_is_given_twice() -> None:
    assert in_claims([held("a", "gpu-0"), held("b", "gpu-1"), {"metadata": {"name": "c", "uid": "u"}}]) == []
    [text] = in_claims([held("a", "gpu-0"), held("b", "gpu-0")])
    assert text == "d.example.com/n1/gpu-0 is held by claim a u-a and by claim b u-b"


def test_shares_and_administrators_take_nothing_away() -> None:
    assert in_claims([held("a", "gpu-0", shareID="1"), held("b", "gpu-0", shareID="2")]) == []
    assert in_claims([held("a", "gpu-0"), held("b", "gpu-0", adminAccess=True)]) == []


def test_a_device_of_two_containers_in_the_checkpoint_is_given_twice(root: Path) -> None:
    def write(*entries: Entry) -> Path:
        path = root / "checkpoint"
        path.write_bytes(Encoder().encode(entries, {}))
        return path

    one, other = (Entry(pod, "main", "v.com/gpu", {-1: ("a",)}, b"") for pod in ("p1", "p2"))
    assert in_checkpoint(write(one)) == []
    [text] = in_checkpoint(write(one, other))
    assert text == "v.com/gpu a is held by pod p1 container main and by pod p2 container main"
    (root / "checkpoint").write_text("{}")
    assert "corrupted" in in_checkpoint(root / "checkpoint")[0]


def test_a_device_in_the_specs_of_two_claims_is_given_twice(root: Path) -> None:
    for number in (1, 2):
        (root / f"{number}.yaml").write_text(f"devices: [{{name: {UID}{number}-gpu-0}}, {{name: common}}]")
        assert len(in_specs(root)) == number - 1
    assert in_specs(root / "nowhere") == []


def test_a_device_of_two_pods_in_pod_resources_is_given_twice() -> None:
    def holder(name: str, *ids: str) -> pb.PodResources:
        devices = [pb.ContainerDevices(resource_name="v.com/gpu", device_ids=[each]) for each in ids]
        return pb.PodResources(name=name, containers=[pb.ContainerResources(name="main", devices=devices)])

    assert in_pod_resources(pb.ListPodResourcesResponse(pod_resources=[holder("a", "0", "0"), holder("b", "1")])) == []
    assert in_pod_resources(pb.ListPodResourcesResponse(pod_resources=[holder("a", "0"), holder("b", "0")]))


async def seen(doubles: Doubles) -> int:
    return doubles.versions + doubles.looks


@pytest.mark.anyio
async def test_a_moment_in_which_two_claims_had_a_device_is_not_missed(root: Path) -> None:
    doubles = Doubles()
    async with open_store(root / "cluster.db") as store, anyio.create_task_group() as tasks:
        tasks.start_soon(doubles.follow_claims, store)
        await until(partial(seen, doubles))
        for name in ("a", "b"):
            await store.create(RESOURCE_CLAIMS, claim(name), "default")
        give = partial(store.patch, RESOURCE_CLAIMS, namespace="default", subresource="status")
        await give("a", MergePatch({"status": allocation("gpu-0")}))
        await give("b", MergePatch({"status": allocation("gpu-0")}))
        await give("a", MergePatch({"status": None}))
        await until(partial(seen, doubles), lambda looks: looks >= 6)
        tasks.cancel_scope.cancel()
    assert list(doubles.found.values()) == [1]


@pytest.mark.long
@pytest.mark.anyio
async def test_a_node_is_looked_at(root: Path) -> None:
    doubles = Doubles()
    async with NodeProcess(root) as node, FakeDevicePlugin(node.plugins, "v.com/gpu", 2, follow=True):
        await node.until_healthy("v.com/gpu", 2)
        await node.create(pod("train", {"v.com/gpu": 1}))
        await node.until_phase("train", "Running")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(doubles.follow_node, node)
            await until(partial(seen, doubles), lambda looks: looks >= 2)
            tasks.cancel_scope.cancel()
    assert doubles.found == {}
