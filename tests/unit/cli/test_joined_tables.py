"""Against the real API, with views that are made of what the node's managers would say."""

import os
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from devlet.cli import main
from devlet.cluster.store.store import Store, open_store
from devlet.daemon.config import Config
from devlet.daemon.kube_api import serving
from devlet.kit.clock import SystemClock
from devlet.node.claims.records import ClaimKey, ClaimRecord, ClaimState, DriverPart, PodWait
from devlet.node.devices.records import DeviceRecord, PluginRecord
from devlet.node.node_slices import NodeSlices
from devlet.node.views import NodeViews
from devlet.objects.documents import Document
from devlet.objects.identifiers import ClaimName, ClaimUID, DriverName, NodeName, PodUID
from devlet.objects.kinds import BUILT_IN, RESOURCE_CLAIMS, RESOURCE_SLICES
from devlet.objects.meta import ObjectMeta
from devlet.objects.pod import Pod
from devlet.objects.prepared import PreparedDevice
from devlet.plugins.dra import DriverRecord, HealthService, Service

pytestmark = pytest.mark.anyio

GPU, NIC = DriverName("gpu.example.com"), DriverName("nic.example.com")
NOW = datetime.now(UTC)
AGO = NOW - timedelta(minutes=5, seconds=30)


class Node:
    """What the node's managers know, all in one; changed by the tests."""

    def __init__(self) -> None:
        self.claims: list[ClaimRecord] = []
        self.waiting: list[PodWait] = []
        self.instances: list[DriverRecord] = []
        self.wipes: dict[DriverName, datetime] = {}
        self.pods: list[Pod] = []

    def waits(self) -> Sequence[PodWait]:
        return self.waiting

    def active(self) -> Sequence[Pod]:
        return self.pods

    def device_records(self) -> Sequence[DeviceRecord]:
        return []

    def plugin_records(self) -> Sequence[PluginRecord]:
        return []

    def container_devices(self, pod: Any, container: Any) -> Mapping[Any, Any]:
        return {}

    def options(self, pod: Any, container: Any) -> None:
        return None


class Claims:
    def __init__(self, node: Node) -> None:
        self.waits = node.waits
        self.records = lambda: node.claims


class Drivers:
    def __init__(self, node: Node) -> None:
        self.records = lambda: node.instances


class Wipes:
    def __init__(self, node: Node) -> None:
        self.records = lambda: node.wipes


Devlet = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
async def store(root: Path) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db", clock=SystemClock(), kinds=BUILT_IN) as store:
        yield store


@pytest.fixture
async def devlet(store: Store, node: Node, root: Path, capsys: pytest.CaptureFixture[str]) -> AsyncIterator[Devlet]:
    """A command line, and what it said. Times are replaced: what is older than a test has its age."""

    async def run(*arguments: str, target: Sequence[str] = ("--root", str(root))) -> tuple[int, str, str]:
        code = await anyio.to_thread.run_sync(main.run, [*arguments, *target])
        out, err = capsys.readouterr()
        out = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", out)
        return code, re.sub(r"\b5m3\ds\b", "5m30s", re.sub(r"\b\ds\b", "0s", out)), err

    slices = NodeSlices(store, NodeName("node1"), Wipes(node))
    views = NodeViews(node, node, claims=Claims(node), drivers=Drivers(node), slices=slices)
    async with serving(store, Config(root=root, node_name="node1"), SystemClock(), views=views):
        yield run


def pod(name: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"))


def wait(name: str, *claims: str, message: str = "", drivers: tuple[DriverName, ...] = ()) -> PodWait:
    keys = tuple(ClaimKey("default", ClaimName(claim)) for claim in claims)
    return PodWait(PodUID(f"uid-{name}"), keys, AGO, message, drivers)


async def put_claim(
    store: Store, name: str, devices: Sequence[tuple[str, str]] = (), reserved: Sequence[str] = (), **metadata: Any
) -> ClaimUID:
    """`devices` are (driver, device) in the pool of node1."""
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": max(1, len(devices))}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    made = await store.create(RESOURCE_CLAIMS, {"metadata": {"name": name} | metadata, "spec": spec}, "default")
    if devices:
        results = [{"request": "gpu", "driver": d, "pool": "node1", "device": id} for d, id in devices]
        field = {"key": "metadata.name", "operator": "In", "values": ["node1"]}
        selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        users = [{"resource": "pods", "name": user, "uid": f"uid-{user}"} for user in reserved]
        status = {"allocation": {"devices": {"results": results}, "nodeSelector": selector}, "reservedFor": users}
        await store.update(RESOURCE_CLAIMS, made | {"status": status}, subresource="status")
    return ClaimUID(made["metadata"]["uid"])


async def put_slice(store: Store, driver: str, *devices: str) -> None:
    pool = {"name": "node1", "generation": 3, "resourceSliceCount": 1}
    listed = [{"name": device} for device in devices]
    spec = {"driver": driver, "nodeName": "node1", "pool": pool, "devices": listed}
    name = f"node1-{driver.partition('.')[0]}"
    await store.create(RESOURCE_SLICES, {"metadata": {"name": name}, "spec": spec})


def record(name: str, uid: ClaimUID, state: ClaimState, *parts: DriverPart, pods: Sequence[str] = ()) -> ClaimRecord:
    key = ClaimKey("default", ClaimName(name))
    return ClaimRecord(key, uid, state, parts, tuple(PodUID(f"uid-{pod}") for pod in pods), AGO)


def prepared(driver: DriverName, *devices: str) -> DriverPart:
    made = (PreparedDevice("node1", device, None, ("gpu",), (f"{driver}/gpu={device}",)) for device in devices)
    return DriverPart(driver, tuple(made))


def instance(driver: DriverName, *, preferred: bool = True, connected: bool = True) -> DriverRecord:
    endpoint = Path(f"/r/plugins/{driver}/{'dra' if preferred else 'old'}.sock")
    advertised = ("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth")
    return DriverRecord(driver, endpoint, Service.V1, advertised, HealthService.V1, AGO, connected, AGO, preferred)


@pytest.fixture
async def busy(store: Store, node: Node) -> None:
    """A claim in use, one whose driver never came, one without devices, one whose pod was not admitted to it."""
    node.pods = [pod(name) for name in ("train", "web", "late")]
    node.instances = [instance(GPU, preferred=False), instance(GPU)]
    node.wipes = {NIC: NOW + timedelta(minutes=10)}
    await put_slice(store, GPU, *(f"gpu-{i}" for i in range(6)))
    await put_slice(store, NIC, "nic-0")
    gpus = [(GPU, f"gpu-{i}") for i in range(4)]
    uid = await put_claim(store, "train-gpu", gpus, ["train"], labels={"app": "train"})
    await put_claim(store, "web-nic", [(NIC, "nic-0")], ["web"])
    await put_claim(store, "unborn")
    shared = await put_claim(store, "shared", [(GPU, "gpu-5")], ["other"])
    node.claims = [
        record("train-gpu", uid, ClaimState.PREPARED, prepared(GPU, *(id for _, id in gpus)), pods=["train"]),
        record("shared", shared, ClaimState.PREPARED, prepared(GPU, "gpu-5"), pods=["other"]),
    ]
    node.waiting = [
        wait("web", "web-nic", message="DRA driver nic.example.com is not registered", drivers=(NIC,)),
        wait("late", "shared", message="claim shared is not reserved for pod late"),
    ]


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


@pytest.mark.usefixtures("busy")
async def test_claims_say_what_they_have_who_uses_them_and_what_they_wait_for(devlet: Devlet) -> None:
    code, out, _ = await devlet("get", "claims")
    assert code == 0
    print(out)
    for a in (["get","claims","-owide"],["get","claims","-A"],["get", "slices"],["get","slices","-owide"], ["get","drivers"],["get","drivers","-owide"],["get","pclaims"],["describe","claim","train-gpu"],["describe","claim","web-nic"],["describe","claim","unborn"],["describe","slices"],["describe","drivers"],["describe","pclaims","shared"]):
        code, out, err = await devlet(*a)
        print("$", *a, code, err); print(out)
    raise SystemExit
