"""What a pod's spec asks of its node besides running containers: deadlines, gates, ports, addresses, finalizers."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from devlet.cluster.client import MergePatch, ObjectList, StrategicMergePatch
from devlet.cluster.store.store import Store
from devlet.node.pods.manager import Settings
from devlet.objects.documents import Document
from devlet.objects.kinds import PODS
from devlet.objects.types.node import Taint

if TYPE_CHECKING:
    from tests.unit.node.pods.conftest import NodeHarness

pytestmark = pytest.mark.anyio

MakePod = Callable[..., Document]
GATE = "example.com/gate"


def condition(status: Document, type_: str) -> Document:
    return next((each for each in status.get("conditions", ()) if each["type"] == type_), {})


async def patch_status(node: "NodeHarness", status: Document) -> None:
    await node.store.patch(PODS, "p", StrategicMergePatch({"status": status}), "default", subresource="status")


# Deadlines


@pytest.mark.spec("KA-9.3e")
async def test_a_pod_fails_when_its_deadline_is_over(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, node.plugged(now):
        uid = await node.create(make_pod("p", 1, activeDeadlineSeconds=60))
        status = await node.phase("p", "Running")
        assert status["startTime"] == "2025-01-01T00:00:00Z"
        await node.pass_time(59)
        assert now.held(uid) == {"dev-0"}
        await node.pass_time(1)
        status = await node.phase("p", "Failed")
        assert (status["reason"], status["message"]) == (
            "DeadlineExceeded",
            "Pod was active on the node longer than the specified deadline",
        )
        assert next(iter(status["containerStatuses"][0]["state"])) == "terminated"
        assert now.held(uid) == set()
        assert (await node.event("DeadlineExceeded"))["type"] == "Normal"


async def test_a_deadline_that_passed_while_devlet_was_down_counts(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running():
        await node.create(make_pod("p", activeDeadlineSeconds=60))
        await node.phase("p", "Running")
    await node.clock.advance(100)
    async with node.running():
        assert (await node.phase("p", "Failed"))["reason"] == "DeadlineExceeded"
    async with node.running():
        assert (await node.phase("p", "Failed"))["reason"] == "DeadlineExceeded"


async def test_a_deadline_may_be_set_while_the_pod_runs(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running():
        await node.create(make_pod("p"))
        await node.phase("p", "Running")
        await node.clock.advance(100)
        await node.store.patch(PODS, "p", MergePatch({"spec": {"activeDeadlineSeconds": 30}}), "default")
        assert (await node.phase("p", "Failed"))["reason"] == "DeadlineExceeded"


async def test_a_pod_that_ends_before_its_deadline_has_succeeded(node: "NodeHarness", make_pod: MakePod) -> None:
    once = make_pod("p", restartPolicy="Never", activeDeadlineSeconds=60, annotations={"devlet.dev/run-for": "10s"})
    async with node.running():
        await node.create(once)
        await node.phase("p", "Running")
        await node.pass_time(10)
        await node.phase("p", "Succeeded")
        await node.clock.advance(100)
        assert "reason" not in await node.phase("p", "Succeeded")


# Readiness


@pytest.mark.spec("KA-9.3f")
async def test_readiness_gates_decide_whether_the_pod_is_ready(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running():
        await node.create(make_pod("p", readinessGates=[{"conditionType": GATE}]))
        status = await node.phase("p", "Running")
        assert condition(status, "ContainersReady")["status"] == "True"
        assert condition(status, "Ready")["reason"] == "ReadinessGatesNotReady"
        assert GATE in condition(status, "Ready")["message"]
        await patch_status(node, {"conditions": [{"type": GATE, "status": "True"}]})
        status = await node.status("p", lambda status: condition(status, "Ready").get("status") == "True")
        assert "reason" not in condition(status, "Ready") and "message" not in condition(status, "Ready")
        assert condition(status, GATE)["status"] == "True"
        await patch_status(node, {"conditions": [{"type": GATE, "status": "False"}]})
        status = await node.status("p", lambda status: condition(status, "Ready").get("status") == "False")
        assert condition(status, "Ready")["message"].endswith("but False")


async def test_a_condition_that_became_true_has_no_reason(node: "NodeHarness", make_pod: MakePod) -> None:
    document = make_pod("p", annotations={"devlet.dev/run-for.first": "10s"})
    document["spec"]["initContainers"] = [{"name": "first", "image": "x"}]
    async with node.running():
        await node.create(document)
        status = await node.status("p", lambda status: bool(condition(status, "Initialized")))
        assert condition(status, "Initialized")["reason"] == "ContainersNotInitialized"
        await node.pass_time(10)
        status = await node.phase("p", "Running")
        for type_ in ("Initialized", "ContainersReady", "Ready"):
            assert condition(status, type_)["status"] == "True"
            assert not {"reason", "message"} & condition(status, type_).keys()


@pytest.mark.spec("KA-9.3g")
async def test_a_status_has_the_observed_generation(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running():
        await node.create(make_pod("p"))
        assert (await node.phase("p", "Running"))["observedGeneration"] == 1
        await node.store.patch(PODS, "p", MergePatch({"spec": {"activeDeadlineSeconds": 3000}}), "default")
        status = await node.status("p", lambda status: status["observedGeneration"] == 2)
        assert {each["observedGeneration"] for each in status["conditions"]} == {2}


# Ports and addresses


@pytest.mark.spec("KA-9.3h")
async def test_a_pod_whose_host_port_is_in_use_is_rejected(node: "NodeHarness", make_pod: MakePod) -> None:
    def with_port(name: str) -> Document:
        document = make_pod(name)
        document["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
        return document

    async with node.running():
        await node.create(with_port("first"))
        await node.phase("first", "Running")
        await node.create(with_port("second"))
        status = await node.phase("second", "Failed")
        assert status["reason"] == "NodePorts"
        assert status["message"] == (
            "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
        )
        await node.store.delete(PODS, "first", "default")
        await node.gone("first")
        await node.create(with_port("third"))
        await node.phase("third", "Running")


async def test_pods_keep_their_host_ports_over_a_restart(node: "NodeHarness", make_pod: MakePod) -> None:
    document = make_pod("first")
    document["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    async with node.running():
        await node.create(document)
        await node.phase("first", "Running")
    async with node.running():
        await node.phase("first", "Running")
        await node.create({**document, "metadata": {"name": "second"}})
        assert (await node.phase("second", "Failed"))["reason"] == "NodePorts"


@pytest.mark.spec("KA-9.3i")
async def test_a_status_has_the_address_of_the_node_even_after_it_changed(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running(Settings(address="10.0.0.1")):
        await node.create(make_pod("p"))
        status = await node.phase("p", "Running")
        assert (status["hostIP"], status["hostIPs"]) == ("10.0.0.1", [{"ip": "10.0.0.1"}])
    async with node.running(Settings(address="10.0.0.2")):
        status = await node.status("p", lambda status: status["hostIP"] == "10.0.0.2")
        assert status["hostIPs"] == [{"ip": "10.0.0.2"}]


# What is not for this node


class Debugged:
    """A cluster in which every pod has a container for debugging."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def list(self, *arguments: Any) -> ObjectList:
        found = await self._store.list(*arguments)
        debug = [{"name": "debug", "image": "x", "targetContainerName": "main"}]
        items = [{**each, "spec": {**each["spec"], "ephemeralContainers": debug}} for each in found.items]
        return replace(found, items=items)


async def test_an_ephemeral_container_is_left_alone(node: "NodeHarness", make_pod: MakePod) -> None:
    debugged: Any = Debugged(node.store)
    node.cluster = debugged
    await node.create(make_pod("p", 1))
    async with node.running() as now, node.plugged(now):
        status = await node.phase("p", "Running")
        assert [each["name"] for each in status["containerStatuses"]] == ["main"]
        assert "ephemeralContainerStatuses" not in status and condition(status, "Ready")["status"] == "True"


@pytest.mark.spec("KA-9.3j")
async def test_a_finalizer_keeps_the_object_but_not_the_devices(node: "NodeHarness", make_pod: MakePod) -> None:
    document = make_pod("p", 1)
    document["metadata"]["finalizers"] = ["example.com/hold"]
    async with node.running() as now, node.plugged(now):
        uid = await node.create(document)
        await node.phase("p", "Running")
        await node.store.delete(PODS, "p", "default")
        await node.phase("p", "Succeeded")
        assert now.held(uid) == set()
        assert (await node.store.get(PODS, "p", "default"))["metadata"]["finalizers"] == ["example.com/hold"]
        await node.store.patch(PODS, "p", MergePatch({"metadata": {"finalizers": None}}), "default")
        await node.gone("p")


# Taints


async def test_a_pod_that_does_not_tolerate_a_taint_of_its_node_is_rejected(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    node.taints = (Taint(key="broken", effect="NoExecute"),)
    async with node.running():
        await node.create(make_pod("p"))
        assert (await node.phase("p", "Failed"))["reason"] == "TaintToleration"
        await node.create(make_pod("tolerant", tolerations=[{"operator": "Exists"}]))
        await node.phase("tolerant", "Running")
