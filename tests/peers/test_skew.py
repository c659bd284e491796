"""A devlet node in control planes of several Kubernetes releases: `make skew` runs this, and records what works.

Each test is one row of the table in docs/compatibility.md. Its docstring is the title, and what it records as `result`
is the cell. DEVLET_SKEW names the releases; without it all of them run.
"""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devlet.cluster.client import Cluster, MergePatch
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.errors import NotFound
from devlet.kit.processes import line, process
from devlet.objects.documents import Document
from devlet.objects.kinds import (
    DEVICE_CLASSES,
    LEASES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from devlet.plugins.dra import DeviceReport, HealthService
from devlet.testing.dra_script import PREPARE
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.fake_dra_cluster import allocated, publish, slice_of
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.node_process import NODE, NodeProcess, pod
from devlet.testing.waiting import until
from tests.support.claim_node import claim_pod
from tests.support.peers.control_plane import RUNTIME_CONFIG, ControlPlane, control_plane

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

RELEASES = ("1.34", "1.35", "1.36")
WANTED = os.environ.get("DEVLET_SKEW", "").split(",") if os.environ.get("DEVLET_SKEW") else RELEASES

pytestmark = [pytest.mark.skew, pytest.mark.anyio]

PROGRAMS = ("kube-apiserver", "kube-scheduler", "kube-controller-manager")
USER = f"system:node:{NODE}"
RESOURCE, EXTENDED = "vendor.com/gpu", "example.com/gpu"
GPU = "gpu.example.com"
GATES = (
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaintRules",
    "DRADeviceTaints",
    "DRAExtendedResource",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
    "DRAResourceClaimDeviceStatus",
    "ResourceHealthStatus",
)
Record = Callable[[str, object], None]


@dataclass(frozen=True)
class Release:
    """A control plane of one release, with every gate of GATES on that it has. `on` says which of them are on by
    default, and `served` has the versions of resource.k8s.io that are served by default."""

    name: str
    plane: ControlPlane
    cluster: Cluster
    on: Mapping[str, bool]
    served: tuple[str, ...]

    @property
    def minor(self) -> int:
        return int(self.name.partition(".")[2])

    def needs(self, *gates: str) -> str:
        """What to record of something that works and belongs to these gates: whether the release has them on. Skip the
        test if it does not know one."""
        if missing := [gate for gate in gates if gate not in self.on]:
            pytest.skip(f"{self.name} has no {', '.join(missing)}")
        off = [f"`{gate}`" for gate in gates if not self.on[gate]]
        return f"with {' and '.join(off)}" if off else "yes"


async def raw(plane: ControlPlane, path: str) -> str:
    answer = await plane.kubectl("get", "--raw", path)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


async def defaults(plane: ControlPlane) -> tuple[dict[str, bool], tuple[str, ...]]:
    """The gates of GATES that kube-apiserver knows, with their defaults, and the versions of resource.k8s.io."""
    found = re.findall(r'^kubernetes_feature_enabled\{name="(\w+)",.*\} ([01])$', await raw(plane, "/metrics"), re.M)
    group = json.loads(await raw(plane, "/apis/resource.k8s.io"))
    on = {name: value == "1" for name, value in found if name in GATES}
    return on, tuple(each["version"] for each in group["versions"])


@pytest.fixture(scope="module", params=WANTED)
async def release(request: pytest.FixtureRequest, peers: "Peers") -> AsyncIterator[Release]:
    name, programs = request.param, peers.binaries.parent / request.param
    source = programs if programs.is_dir() else peers.binaries
    peers.need("etcd", "kubectl", *PROGRAMS)
    path = Path(tempfile.mkdtemp(prefix="dv"))
    binaries = path / "bin"
    binaries.mkdir()
    for each in PROGRAMS:
        (binaries / each).symlink_to(source / each)
    for each in ("etcd", "kubectl"):
        (binaries / each).symlink_to(peers.binaries / each)
    async with control_plane(binaries, path / "a", runtime_config={}, feature_gates={}, fsync=False) as plane:
        on, served = await defaults(plane)
        version = json.loads(await raw(plane, "/version"))["gitVersion"]
        assert version.startswith(f"v{name}."), f"{source} has {version}: run `make skew`"
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(
            control_plane(
                binaries,
                path / "b",
                scheduler=True,
                controller_manager=True,
                runtime_config=RUNTIME_CONFIG,
                feature_gates=dict.fromkeys(on, True),
                users={USER: ["system:nodes"]},
                fsync=False,
            )
        )
        answer = await plane.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
        assert answer.returncode == 0, answer.stderr
        cluster = await stack.enter_async_context(connected(kubeconfig.connection([plane.kubeconfig])))
        yield Release(name, plane, cluster, on, served)
    shutil.rmtree(path)


@pytest.fixture(autouse=True)
def feature(request: pytest.FixtureRequest, record_property: Record, release: Release) -> None:
    record_property("feature", (request.function.__doc__ or "").strip().rstrip("."))
    record_property("release", release.name)


@pytest.fixture
async def node(release: Release, root: Path) -> AsyncIterator[NodeProcess]:
    """With the rights of a node, and ready. Nothing is left when it ends."""
    async with NodeProcess(root, arguments=["--kubeconfig", str(release.plane.kubeconfig_of(USER))]) as running:
        await until_node_is_ready(release)
        yield running
        await clear(release)
    await release.plane.kubectl("delete", "deviceclasses,resourceclaimtemplates,resourceslices", "--all")
    await release.plane.kubectl("delete", "node", NODE, "--wait=true")
    assert "Traceback" not in running.log


@pytest.fixture
async def driver(release: Release, node: NodeProcess) -> AsyncIterator[FakeDraDriver]:
    """It can be called, and has published nothing. There is a class for its devices, which is an extended resource."""
    spec: Document = {"selectors": [{"cel": {"expression": f'device.driver == "{GPU}"'}}]}
    if "DRAExtendedResource" in release.on:
        spec["extendedResourceName"] = EXTENDED
    await create(release, DEVICE_CLASSES, {"metadata": {"name": GPU}, "spec": spec})
    async with FakeDraDriver(node.root, GPU, pool=NODE, health_services=(HealthService.V1ALPHA1,)) as running:
        running.handler = allocated(release.cluster, GPU)
        await until(node.driver_states, lambda found: found.get(GPU, {}).get("state") == "Connected")
        yield running
        await clear(release)
        await until(node.prepared, lambda found: not found)
        assert not running.prepared


async def clear(release: Release) -> None:
    for kind in ("pods", "resourceclaims"):
        answer = await release.plane.kubectl("delete", kind, "--all", "--wait=true", "--timeout=60s")
        assert answer.returncode == 0, answer.stderr


async def until_node_is_ready(release: Release) -> None:
    async def read() -> Document:
        try:
            return await release.cluster.get(NODES, NODE)
        except NotFound:
            return {}

    def holds(found: Document) -> bool:
        conditions = {each["type"]: each["status"] for each in found.get("status", {}).get("conditions", ())}
        return conditions.get("Ready") == "True" and not found["spec"].get("taints")

    await until(read, holds)


async def create(release: Release, resource: Resource, document: Document) -> Document:
    head = {"apiVersion": resource.api_version, "kind": resource.kind.kind}
    namespace = "default" if resource.kind.namespaced else ""
    return await release.cluster.create(resource, {**head, **document}, namespace)


async def create_claim(release: Release, name: str, **exactly: Any) -> None:
    await create(release, RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": spec_of(**exactly)})


def spec_of(**exactly: Any) -> Document:
    return {"devices": {"requests": [{"name": "req", "exactly": {"deviceClassName": GPU, **exactly}}]}}


async def create_pod(release: Release, document: Document, *, scheduler: str = "default-scheduler") -> None:
    """Unbound: the scheduler places it."""
    spec = {key: value for key, value in document["spec"].items() if key != "nodeName"}
    more = {"terminationGracePeriodSeconds": 1, "schedulerName": scheduler}
    await create(release, PODS, {"metadata": document["metadata"], "spec": {**spec, **more}})


def getting(release: Release, resource: Resource, name: str) -> Callable[[], Awaitable[Document]]:
    async def read() -> Document:
        try:
            return await release.cluster.get(resource, name, "default")
        except NotFound:
            return {}

    return read


async def until_running(release: Release, name: str) -> Document:
    return await until(getting(release, PODS, name), lambda found: found.get("status", {}).get("phase") == "Running")


async def delete(release: Release, name: str) -> None:
    await release.cluster.delete(PODS, name, "default")
    await until(getting(release, PODS, name), lambda found: not found)


async def devices_of(release: Release, claim: str) -> list[Document]:
    found = await release.cluster.get(RESOURCE_CLAIMS, claim, "default")
    results: list[Document] = found["status"]["allocation"]["devices"]["results"]
    return results


async def test_versions(release: Release, record_property: Record) -> None:
    """`resource.k8s.io` as served by default."""
    assert "v1" in release.served
    record_property("result", ", ".join(f"`{version}`" for version in release.served))


async def test_ready(release: Release, node: NodeProcess, record_property: Record) -> None:
    """The node joins with a node's rights, is ready, and renews its lease."""
    read = release.cluster.get
    first = (await read(LEASES, NODE, "kube-node-lease"))["spec"]["renewTime"]

    async def renewed() -> str:
        return str((await read(LEASES, NODE, "kube-node-lease"))["spec"]["renewTime"])

    await until(renewed, lambda found: found > first)
    record_property("result", "yes")


async def test_device_plugin(release: Release, node: NodeProcess, record_property: Record) -> None:
    """A device plugin's pod runs, and its end releases the device."""
    async with FakeDevicePlugin(node.plugins, RESOURCE, 2, follow=True):
        await node.until_healthy(RESOURCE, 2)
        await create_pod(release, pod("train", {RESOURCE: 1}))
        await until_running(release, "train")
        assert set(await node.held()) == {"train"}
        await delete(release, "train")
        await until(node.held, lambda found: not found)
    record_property("result", "yes")


async def test_claim(release: Release, node: NodeProcess, driver: FakeDraDriver, record_property: Record) -> None:
    """A claim from a template, placed by kube-scheduler, is prepared and unprepared."""
    await publish(release.cluster, GPU, NODE, 2)
    await create(release, RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "gpu"}, "spec": {"spec": spec_of()}})
    document = claim_pod("train", "gpu")
    document["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    await create_pod(release, document)
    await until_running(release, "train")
    assert len(driver.prepared) == 1
    await delete(release, "train")
    await until(node.prepared, lambda found: not found)
    record_property("result", "yes")


async def test_control(
    release: Release, node: NodeProcess, driver: FakeDraDriver, root: Path, record_property: Record
) -> None:
    """`devlet control` schedules a pod with a claim beside kube-scheduler."""
    await publish(release.cluster, GPU, NODE, 2)
    argv = [sys.executable, "-m", "devlet", "control", "--kubeconfig", str(release.plane.kubeconfig)]
    ready = line("devlet control is ready: ")
    async with process(argv, log=root / "control.log", name="devlet control", ready=ready):
        await create_claim(release, "gpu")
        await create_pod(release, claim_pod("train", "gpu"), scheduler="devlet")
        await until_running(release, "train")
        assert len(driver.prepared) == 1
        await delete(release, "train")
    record_property("result", "yes")


async def test_restart(release: Release, node: NodeProcess, driver: FakeDraDriver, record_property: Record) -> None:
    """After kill -9, the node continues with the same devices and claims."""
    await publish(release.cluster, GPU, NODE, 2)
    async with FakeDevicePlugin(node.plugins, RESOURCE, 2, follow=True):
        await node.until_healthy(RESOURCE, 2)
        await create_claim(release, "gpu")
        document = claim_pod("train", "gpu")
        document["spec"]["containers"][0]["resources"]["limits"] = {RESOURCE: "1"}
        await create_pod(release, document)
        await until_running(release, "train")
        held, prepared = await node.held(), set(driver.prepared)
        await node.kill()
        await node.start()
        await driver.until_registered(2)
        await until(node.driver_states, lambda found: found[GPU]["state"] == "Connected")
        assert await node.held() == held
        assert set(driver.prepared) == prepared
        assert len(driver.asked(PREPARE)) == 1
        await delete(release, "train")
    record_property("result", "yes")


async def test_extended_resource(
    release: Release, node: NodeProcess, driver: FakeDraDriver, record_property: Record
) -> None:
    """An extended resource is provided by a device class."""
    result = release.needs("DRAExtendedResource")
    await publish(release.cluster, GPU, NODE, 2)
    await create_pod(release, pod("train", {EXTENDED: 1}))
    found = await until_running(release, "train")
    assert found["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
    assert len(driver.prepared) == 1
    await delete(release, "train")
    record_property("result", result)


async def test_health(release: Release, node: NodeProcess, driver: FakeDraDriver, record_property: Record) -> None:
    """A device's health is in the pod's status."""
    result = release.needs("ResourceHealthStatus")
    await publish(release.cluster, GPU, NODE, 1)
    await create_claim(release, "gpu")
    await create_pod(release, claim_pod("train", "gpu"))
    await until_running(release, "train")
    driver.health.set([DeviceReport(NODE, "dev-0", "Unhealthy")])
    await until(getting(release, PODS, "train"), lambda found: '"health": "Unhealthy"' in json.dumps(found["status"]))
    record_property("result", result)


async def test_binding_conditions(
    release: Release, node: NodeProcess, driver: FakeDraDriver, record_property: Record
) -> None:
    """A pod is bound when its device's binding conditions are true."""
    result = release.needs("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")
    conditions = {"bindingConditions": ["example.com/ready"], "bindingFailureConditions": ["example.com/failed"]}
    await publish(release.cluster, GPU, NODE, [{"name": "dev-0", **conditions}])
    await create_claim(release, "gpu")
    await create_pod(release, claim_pod("train", "gpu"))
    await until(getting(release, RESOURCE_CLAIMS, "gpu"), lambda found: "allocation" in found.get("status", {}))
    assert driver.asked(PREPARE) == []
    moment = "2026-01-01T00:00:00Z"
    true = {"type": "example.com/ready", "status": "True", "reason": "Ready", "lastTransitionTime": moment}
    device = {"driver": GPU, "pool": NODE, "device": "dev-0", "conditions": [{**true, "message": ""}]}
    patch = MergePatch({"status": {"devices": [device]}})
    await release.cluster.patch(RESOURCE_CLAIMS, "gpu", patch, "default", subresource="status")
    await until_running(release, "train")
    record_property("result", result)


async def test_consumable_capacity(
    release: Release, node: NodeProcess, driver: FakeDraDriver, record_property: Record
) -> None:
    """Two claims share the capacity of one device."""
    result = release.needs("DRAConsumableCapacity")
    shared = {"name": "dev-0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "80Gi"}}}
    await publish(release.cluster, GPU, NODE, [shared])
    for name in ("one", "two"):
        await create_claim(release, name, capacity={"requests": {"memory": "30Gi"}})
        await create_pod(release, claim_pod(name, name))
        await until_running(release, name)
    found = [*await devices_of(release, "one"), *await devices_of(release, "two")]
    assert [each["device"] for each in found] == ["dev-0", "dev-0"]
    assert len({each["shareID"] for each in found}) == 2
    record_property("result", result)


async def test_partitionable_devices(
    release: Release, node: NodeProcess, driver: FakeDraDriver, record_property: Record
) -> None:
    """Partitions of a device draw on shared counters."""
    result = release.needs("DRAPartitionableDevices")
    counters = {"sharedCounters": [{"name": "memory", "counters": {"memory": {"value": "80Gi"}}}]}
    parts = [
        {"name": name, "consumesCounters": [{"counterSet": "memory", "counters": {"memory": {"value": size}}}]}
        for name, size in (("half-0", "40Gi"), ("half-1", "40Gi"), ("third", "40Gi"))
    ]
    devices = slice_of(GPU, NODE, parts)
    if release.minor == 34:  # counters and devices are in one slice
        devices["spec"].update(counters)
        await create(release, RESOURCE_SLICES, devices)
    else:
        devices["spec"]["pool"]["resourceSliceCount"] = 2
        sets = slice_of(GPU, NODE, [])
        sets["metadata"]["name"] += "-counters"
        del sets["spec"]["devices"]
        sets["spec"] = {**sets["spec"], "pool": devices["spec"]["pool"], **counters}
        for each in (sets, devices):
            await create(release, RESOURCE_SLICES, each)
    await create_claim(release, "gpu", count=2)
    await create_pod(release, claim_pod("train", "gpu"))
    await until_running(release, "train")
    await create_claim(release, "more")
    await create_pod(release, claim_pod("late", "more"))

    def waits(found: Document) -> bool:
        conditions = found.get("status", {}).get("conditions", ())
        return any((each["type"], each["status"]) == ("PodScheduled", "False") for each in conditions)

    await until(getting(release, PODS, "late"), waits)
    await delete(release, "train")
    await until_running(release, "late")
    record_property("result", result)


async def test_taints(release: Release, node: NodeProcess, driver: FakeDraDriver, record_property: Record) -> None:
    """A device's `NoExecute` taint evicts the pod that uses it."""
    result = release.needs("DRADeviceTaints")
    await publish(release.cluster, GPU, NODE, 1)
    await create_claim(release, "gpu")
    await create_pod(release, claim_pod("train", "gpu"))
    await until_running(release, "train")
    taint = {"key": "example.com/broken", "effect": "NoExecute"}
    await publish(release.cluster, GPU, NODE, [{"name": "dev-0", "taints": [taint]}])
    await until(getting(release, PODS, "train"), lambda found: not found)
    await until(node.prepared, lambda found: not found)
    record_property("result", result)
