"""A driver made with the SDK and a devlet node, with every fault on the wire between them. In the end pods run, and
what was prepared is given back."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from devlet.cluster.client import Cluster
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.sdk.device_plugin import DevicePlugin, PluginOptions
from devlet.sdk.dra_driver import Devices, DraDriver, DraOptions
from devlet.sdk.values import Claim, ClaimRef, Device, Grant, PluginDevice, Prepared
from devlet.testing.faulty_wire import FaultyWire
from devlet.testing.grpc_faults import ANSWER, REQUEST, Faults, Moment, Rule
from devlet.testing.node_process import NODE, NodeProcess
from devlet.testing.node_process import pod as plugin_pod
from devlet.testing.waiting import until
from tests.support.workloads import device_class, pod, template

pytestmark = [pytest.mark.anyio]

NAME = "gpu.example.com"
RESOURCE = "vendor.com/gpu"
SETTINGS = "timeouts: {draCall: 2s, claimReconcile: 1s}\n"
PREPARE, UNPREPARE = "NodePrepareResources", "NodeUnprepareResources"

Fault = Callable[[Faults, str], Rule]


def faults_of_calls() -> dict[str, Fault]:
    """By name, each of the kinds; all of them end."""
    return {
        "delay": lambda faults, method: faults.delay(method, 0.2),
        "late answer": lambda faults, method: faults.delay(method, 0.2, after=True),
        "slower than the node waits": lambda faults, method: faults.delay(method, 3.0, times=1),
        "drop": lambda faults, method: faults.drop(method, times=1),
        "lost answer": lambda faults, method: faults.drop(method, after=True, times=1),
        "error": lambda faults, method: faults.error(method, "UNAVAILABLE", "told to fail", times=2),
        "error after the work": lambda faults, method: faults.error(method, after=True, times=1),
        "unimplemented": lambda faults, method: faults.error(method, "UNIMPLEMENTED", times=1),
        "garbage asked": lambda faults, method: faults.corrupt(method, REQUEST, b"\xff\xff", times=1),
        "garbage answered": lambda faults, method: faults.corrupt(method, ANSWER, b"\xff\xff", times=1),
        "nothing answered": lambda faults, method: faults.corrupt(method, ANSWER, b"", times=1),
        "answered without the last byte": lambda faults, method: faults.corrupt(method, to=lambda m: m[:-1], times=1),
        "disconnection before": lambda faults, method: faults.disconnect(method, Moment.BEFORE, times=1),
        "disconnection during": lambda faults, method: faults.disconnect(method, Moment.DURING, times=1),
        "disconnection after": lambda faults, method: faults.disconnect(method, Moment.AFTER, times=1),
        "duplicate": lambda faults, method: faults.duplicate(method),
        "two answers": lambda faults, method: faults.duplicate(method, ANSWER, times=1),
        "now and then": lambda faults, method: faults.error(method, probability=0.5, times=3),
    }


# A list that is lost, or empty, is not sent again: nobody could know that it should be.
FINAL = ("lost answer", "nothing answered")

# One of each sort, for which the node does not have to wait.
QUICK = ("delay", "error after the work", "garbage answered", "disconnection during")


def each_of(faults: dict[str, Fault]) -> pytest.MarkDecorator:
    slow = pytest.mark.long
    params = [pytest.param(fault, id=name, marks=[slow] * (name not in QUICK)) for name, fault in faults.items()]
    return pytest.mark.parametrize("fault", params)


every_fault = each_of(faults_of_calls())
every_fault_of_streams = each_of({name: fault for name, fault in faults_of_calls().items() if name not in FINAL})


class Gpus(DraDriver):
    name = NAME

    def __init__(self) -> None:
        self.held: set[str] = set()

    async def devices(self) -> AsyncIterator[Devices]:
        yield [Device("one"), Device("two")]

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        self.held.add(claim.ref.name)
        return [Prepared(result, env={"GPU": result.device}) for result in claim.results]

    async def unprepare(self, claim: ClaimRef) -> None:
        self.held.discard(claim.name)


class Plugs(DevicePlugin):
    resource = RESOURCE

    async def devices(self) -> AsyncIterator[Sequence[PluginDevice]]:
        yield [PluginDevice("one"), PluginDevice("two")]

    async def allocate(self, ids: Sequence[str]) -> Grant:
        return Grant(env={"GPU": ",".join(ids)})


class Parts:
    def __init__(self, node: NodeProcess, cluster: Cluster, wire: FaultyWire) -> None:
        self.node = node
        self.cluster = cluster
        self.wire = wire
        self.faults = wire.faults

    @asynccontextmanager
    async def driver(self) -> AsyncIterator[Gpus]:
        made = Gpus()
        options = DraOptions(NODE, kubelet=self.wire.root, cdi_directory=self.node.root / "cdi")
        async with anyio.create_task_group() as tasks:
            await tasks.start(made.run, options, self.cluster)
            yield made
            tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def plugin(self) -> AsyncIterator[None]:
        options = PluginOptions(
            directory=self.wire.device_plugins, register_timeout=2.0, retry=0.05, retry_limit=0.2, check=1.0
        )
        async with anyio.create_task_group() as tasks:
            await tasks.start(Plugs().run, options)
            yield
            tasks.cancel_scope.cancel()

    async def submit(self, *names: str) -> None:
        for name in names:
            await self.cluster.create(kinds.PODS, pod(name, template="one"), "default")

    async def running(self, name: str) -> Document:
        read = partial(self.cluster.get, kinds.PODS, name, "default")
        return await until(read, lambda found: found["status"].get("phase") == "Running")

    async def delete(self, *names: str) -> None:
        for name in names:
            await self.cluster.delete(kinds.PODS, name, "default")
        await self.node.until_gone(*names)


@pytest.fixture(scope="module")
async def node(module_root: Path) -> AsyncIterator[NodeProcess]:
    async with NodeProcess(module_root, SETTINGS, control=True) as node:
        yield node
        assert "Traceback" not in node.log


@pytest.fixture(scope="module")
async def cluster(node: NodeProcess) -> AsyncIterator[Cluster]:
    async with connected(kubeconfig.connection([node.root / "kubeconfig"])) as cluster:
        await cluster.create(kinds.DEVICE_CLASSES, device_class())
        await cluster.create(kinds.RESOURCE_CLAIM_TEMPLATES, template("one"), "default")
        yield cluster


@pytest.fixture
async def parts(node: NodeProcess, cluster: Cluster) -> AsyncIterator[Parts]:
    async with FaultyWire.between(node.root, faults=Faults(seed=3)) as wire:
        yield Parts(node, cluster, wire)


async def none_held(driver: Gpus) -> bool:
    return not driver.held


@every_fault
async def test_a_pod_runs_and_goes_whatever_happens_to_prepare_and_unprepare(parts: Parts, fault: Fault) -> None:
    async with parts.driver() as driver:
        rules = [fault(parts.faults, method) for method in (PREPARE, UNPREPARE)]
        await parts.submit("train")
        await parts.running("train")
        assert (await parts.node.environment("train"))["GPU"] in ("one", "two")
        assert len(driver.held) == 1
        await parts.delete("train")
        await until(partial(none_held, driver))
        assert all(rule.hits for rule in rules)


@pytest.mark.long
@every_fault
async def test_a_driver_is_registered_in_the_end_whatever_happens_to_that(parts: Parts, fault: Fault) -> None:
    rules = [fault(parts.faults, method) for method in ("GetInfo", "NotifyRegistrationStatus")]
    async with parts.driver():
        await parts.submit("train")
        await parts.running("train")
        assert rules[0].hits
        await parts.delete("train")


@pytest.mark.long
async def test_a_prepare_that_hangs_is_tried_again(parts: Parts) -> None:
    async with parts.driver():
        hang = parts.faults.hang(PREPARE)
        await parts.submit("train")
        await hang.until_hit(2)  # the node has given up once
        hang.end()
        await parts.running("train")
        await parts.delete("train")


async def test_two_pods_run_though_their_claims_are_prepared_in_another_order(parts: Parts) -> None:
    async with parts.driver():
        reorder = parts.faults.reorder(PREPARE, within=1.5)
        await parts.submit("one", "two")
        for name in ("one", "two"):
            await parts.running(name)
        assert reorder.hits >= 2
        reorder.end()
        await parts.delete("one", "two")


@every_fault
async def test_a_device_plugin_is_registered_in_the_end_whatever_happens_to_that(parts: Parts, fault: Fault) -> None:
    rule = fault(parts.faults, "Register")
    async with parts.plugin():
        await parts.node.until_healthy(RESOURCE, 2)
        assert rule.hits


@pytest.mark.long
@every_fault_of_streams
async def test_devices_are_known_in_the_end_whatever_happens_to_their_list(parts: Parts, fault: Fault) -> None:
    rule = fault(parts.faults, "ListAndWatch")
    async with parts.plugin():
        await until(partial(hits, rule))
        await parts.node.until_healthy(RESOURCE, 2)
        await parts.cluster.create(kinds.PODS, plugin_pod("train", {RESOURCE: 1}), "default")
        await parts.running("train")
        await parts.delete("train")


async def hits(rule: Rule) -> int:
    return rule.hits
