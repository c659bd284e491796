from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest

from devlet.errors import Unavailable
from devlet.node.admission import Admission
from devlet.node.reports import Rejection
from devlet.node.topology.hints import Hints, Mask, Provider
from devlet.node.topology.machine import simulated
from devlet.node.topology.manager import TopologyManager
from devlet.objects.documents import view
from devlet.objects.identifiers import PodUID, ResourceName
from devlet.objects.types.container import Container
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.node import Node, NodeSpec, NodeStatus, Taint
from devlet.objects.types.pod import Pod

pytestmark = pytest.mark.anyio

GPU = ResourceName("vendor.com/gpu")
NODE = Node(metadata=ObjectMeta(name="n1"), status=NodeStatus(allocatable={"cpu": "2", "pods": "10", GPU: "1"}))
TOPOLOGY = TopologyManager("none", "container", {}, simulated(1))


class Attempt:
    def __init__(self, devices: "Devices") -> None:
        self.devices = devices
        self.committed = False

    def container_hints(self, container: Container) -> Hints:
        return {}

    def pod_hints(self) -> Hints:
        return {}

    async def allocate(self, container: Container, affinity: Mask | None) -> None:
        self.devices.reserved += 1

    async def commit(self) -> None:
        await self.devices.gate.wait()
        if self.devices.full:
            raise Unavailable("no space left on device")
        self.committed = True
        self.devices.committed += 1


class Devices:
    """Counts what attempts reserve, commit and return. Commits wait for the gate."""

    def __init__(self) -> None:
        self.reserved = self.committed = 0
        self.full = False
        self.counts: dict[ResourceName, int] = {}
        self.gate = anyio.Event()
        self.gate.set()

    @asynccontextmanager
    async def attempt(self, pod: Pod) -> AsyncIterator[Attempt]:
        attempt = Attempt(self)
        before = self.reserved
        yield attempt
        if not attempt.committed:
            self.reserved = before

    def allocated_counts(self) -> dict[ResourceName, int]:
        return self.counts


def pod(uid: str = "u1", **requests: str) -> Pod:
    wanted = {key.replace("gpu", GPU): value for key, value in requests.items()}
    container = {"name": "main", "resources": {"requests": wanted, "limits": wanted}}
    return view(Pod, {"metadata": {"name": uid, "uid": uid}, "spec": {"containers": [container]}})


def admission(devices: Devices) -> Admission:
    return Admission(devices, TOPOLOGY, lambda: NODE)


async def test_an_admitted_pod_keeps_its_devices() -> None:
    devices = Devices()
    assert await admission(devices).admit(pod(cpu="1")) is None
    assert (devices.reserved, devices.committed) == (1, 1)


async def test_a_rejected_pod_leaves_no_trace() -> None:
    devices = Devices()
    door = admission(devices)
    found = await door.admit(pod(cpu="3"))
    assert found is not None and found.reason == "OutOfcpu"
    assert (devices.reserved, devices.committed) == (0, 0)
    assert await door.admit(pod("u2", cpu="2")) is None


class Choosy:
    async def admit(self, pod: Pod, providers: Sequence[Provider]) -> Rejection | None:
        return Rejection("TopologyAffinityError", "not near enough")


async def test_topology_is_checked_first() -> None:
    door = Admission(Devices(), Choosy(), lambda: NODE)
    found = await door.admit(pod(cpu="3"))
    assert found is not None and found.reason == "TopologyAffinityError"


async def test_pods_that_were_admitted_count_until_they_are_forgotten() -> None:
    door = admission(Devices())
    door.adopt(pod("running", cpu="1500m"))
    found = await door.admit(pod("u1", cpu="1"))
    assert found is not None and "used: 1500" in found.message
    door.forget(PodUID("running"))
    assert await door.admit(pod("u1", cpu="1")) is None


async def test_a_pod_does_not_count_against_itself() -> None:
    door = admission(Devices())
    assert await door.admit(pod(cpu="2")) is None
    assert await door.admit(pod(cpu="2")) is None


async def test_of_two_pods_at_the_same_time_one_gets_the_last_place() -> None:
    devices = Devices()
    devices.gate = anyio.Event()
    door = admission(devices)
    answers: list[Rejection | None] = []

    async def admit(uid: str) -> None:
        answers.append(await door.admit(pod(uid, cpu="2")))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(admit, "u1")
        tasks.start_soon(admit, "u2")
        await anyio.wait_all_tasks_blocked()
        devices.gate.set()
    assert sorted(answer.reason if answer else "" for answer in answers) == ["", "OutOfcpu"]


async def test_a_pod_whose_admission_cannot_be_stored_is_not_admitted_and_not_counted() -> None:
    devices = Devices()
    devices.full = True
    door = admission(devices)
    with pytest.raises(Unavailable):
        await door.admit(pod(cpu="2"))
    devices.full = False
    assert await door.admit(pod("u2", cpu="2")) is None


@pytest.mark.spec("DP-8.35")
async def test_allocated_devices_suffice_even_if_fewer_are_allocatable() -> None:
    devices = Devices()
    devices.counts = {GPU: 2}
    door = admission(devices)
    door.adopt(pod("running", gpu="1"))
    assert await door.admit(pod("u1", gpu="1")) is None
    devices.counts = {}
    found = await door.admit(pod("u2", gpu="1"))
    assert found is not None and found.reason == f"OutOf{GPU}"


async def test_two_pods_cannot_have_the_same_port_of_the_host() -> None:
    def with_port(uid: str, number: int) -> Pod:
        ports = [{"containerPort": 80, "hostPort": number}]
        document = {"metadata": {"name": uid, "uid": uid}, "spec": {"containers": [{"name": "main", "ports": ports}]}}
        return view(Pod, document)

    door = admission(Devices())
    assert await door.admit(with_port("u1", 8080)) is None
    assert await door.admit(with_port("u1", 8080)) is None
    assert await door.admit(with_port("u2", 8081)) is None
    refused = await door.admit(with_port("u3", 8080))
    assert refused is not None and refused.reason == "NodePorts"
    door.forget(PodUID("u1"))
    assert await door.admit(with_port("u3", 8080)) is None


BROKEN = Taint(key="broken", effect="NoExecute")
TAINTED = Node(
    metadata=NODE.metadata, spec=NodeSpec(taints=(BROKEN, Taint(key="x", effect="NoSchedule"))), status=NODE.status
)


async def test_pods_that_a_taint_would_evict_are_rejected() -> None:
    door = Admission(Devices(), TOPOLOGY, lambda: TAINTED)
    message = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
    assert await door.admit(pod()) == Rejection("TaintToleration", message)
    tolerations = [{"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}]
    container = {"name": "main"}
    document = {"metadata": {"uid": "u2"}, "spec": {"containers": [container], "tolerations": tolerations}}
    assert await door.admit(view(Pod, document)) is None


async def test_static_pods_stay_whatever_the_taints_of_the_node() -> None:
    assert await Admission(Devices(), TOPOLOGY, lambda: TAINTED).admit(pod(), static=True) is None


def test_extended_resources_that_the_node_does_not_have_are_returned() -> None:
    node = Node(metadata=ObjectMeta(name="n1"), status=NodeStatus(allocatable={"cpu": "2", "a.com/x": "0", GPU: "1"}))
    door = Admission(Devices(), TOPOLOGY, lambda: node)
    wanted = {"cpu": "1", "memory": "1", "a.com/x": "1", "b.com/y": "1", GPU: "5"}
    assert set(door.unknown(pod(**wanted))) == {"a.com/x", "b.com/y"}
