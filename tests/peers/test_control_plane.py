"""The control plane of real programs serves what devlet's own API must serve too."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.peers.control_plane import ControlPlane, control_plane

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

DEVICE_CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
}

SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "n1-gpus"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {"name": "gpu-0", "attributes": {"model": {"string": "A"}}, "capacity": {"memory": {"value": "8Gi"}}}
        ],
    },
}


async def read(cluster: ControlPlane, *arguments: str) -> Any:
    answer = await cluster.kubectl("get", *arguments, "-o", "json")
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


async def apply(cluster: ControlPlane, document: dict[str, Any]) -> None:
    answer = await cluster.kubectl("apply", "-f", "-", stdin=json.dumps(document))
    assert answer.returncode == 0, answer.stderr


async def test_a_deviceclass_can_be_created_and_read_back_in_two_versions(cluster: ControlPlane) -> None:
    await apply(cluster, DEVICE_CLASS)
    for version in ("v1", "v1beta1"):
        found = await read(cluster, f"deviceclasses.{version}.resource.k8s.io", "gpu")
        assert found["apiVersion"] == f"resource.k8s.io/{version}"
        assert found["spec"] == DEVICE_CLASS["spec"]


async def test_a_resourceslice_has_its_devices_in_the_shape_of_each_version(cluster: ControlPlane) -> None:
    await apply(cluster, SLICE)
    newest = await read(cluster, "resourceslices.v1.resource.k8s.io", "n1-gpus")
    older = await read(cluster, "resourceslices.v1beta1.resource.k8s.io", "n1-gpus")
    device = {"attributes": {"model": {"string": "A"}}, "capacity": {"memory": {"value": "8Gi"}}}
    assert newest["spec"]["devices"] == [{"name": "gpu-0", **device}]
    assert older["spec"]["devices"] == [{"name": "gpu-0", "basic": device}]


async def test_every_version_of_the_resource_group_is_served(cluster: ControlPlane) -> None:
    answer = await cluster.kubectl("api-versions")
    served = {version for version in answer.stdout.split() if version.startswith("resource.k8s.io/")}
    assert served == {f"resource.k8s.io/{version}" for version in ("v1", "v1beta1", "v1beta2", "v1alpha3")}


async def test_the_controller_manager_makes_service_accounts(cluster: ControlPlane) -> None:
    answer = await cluster.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
    assert answer.returncode == 0, answer.stderr


async def test_the_scheduler_says_why_a_pod_has_no_node(cluster: ControlPlane) -> None:
    await cluster.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "nowhere"},
        "spec": {"nodeSelector": {"no": "such"}, "containers": [{"name": "c", "image": "none"}]},
    }
    await apply(cluster, pod)
    waited = await cluster.kubectl("wait", "--for=condition=PodScheduled=False", "pod/nowhere", "--timeout=60s")
    assert waited.returncode == 0, waited.stderr
    assert (await read(cluster, "pod", "nowhere"))["status"]["conditions"][0]["reason"] == "Unschedulable"


async def test_a_node_may_read_itself_but_no_other_node(cluster: ControlPlane) -> None:
    own = await cluster.kubectl("auth", "can-i", "get", "nodes/n1", user="system:node:n1")
    other = await cluster.kubectl("auth", "can-i", "get", "nodes/n2", user="system:node:n1")
    assert (own.stdout.split()[0], other.stdout.split()[0]) == ("yes", "no")


async def test_every_program_of_the_control_plane_is_running(cluster: ControlPlane) -> None:
    assert set(cluster.pids) == {"etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager"}
    assert [program.returncode for program in cluster.programs.values()] == [None] * 4


async def test_a_small_control_plane_leaves_nothing_running(peers: "Peers", root: Path) -> None:
    peers.need("etcd", "kubectl", "kube-apiserver")
    async with control_plane(peers.binaries, root) as plane:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
        pod["spec"] = {"containers": [{"name": "c", "image": "none"}]}
        await apply(plane, pod)  # no service account needed
    assert set(plane.pids) == {"etcd", "kube-apiserver"}
    assert all(program.returncode is not None for program in plane.programs.values())


async def test_the_same_root_again_has_the_same_objects(peers: "Peers", root: Path) -> None:
    peers.need("etcd", "kubectl", "kube-apiserver")
    async with control_plane(peers.binaries, root) as plane:
        await apply(plane, DEVICE_CLASS)
    async with control_plane(peers.binaries, root) as plane:
        assert (await read(plane, "deviceclass", "gpu"))["spec"] == DEVICE_CLASS["spec"]


async def test_a_program_that_is_killed_comes_back_where_it_was(peers: "Peers", root: Path) -> None:
    peers.need("etcd", "kubectl", "kube-apiserver")
    async with control_plane(peers.binaries, root, fsync=False) as plane:
        await apply(plane, DEVICE_CLASS)
        before = plane.pids
        await plane.kill("kube-apiserver")
        assert (await plane.kubectl("get", "deviceclass", "gpu")).returncode != 0
        await plane.start("kube-apiserver")
        assert (await read(plane, "deviceclass", "gpu"))["spec"] == DEVICE_CLASS["spec"]
        assert plane.pids["kube-apiserver"] != before["kube-apiserver"]
        assert plane.pids["etcd"] == before["etcd"]
