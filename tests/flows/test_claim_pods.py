"""Pods with claims of every kind on a whole node: which devices their containers get, and when they are released."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from devlet.objects.documents import Document
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.fake_dra_driver import PREPARE, UNPREPARE, FakeDraDriver, PreparedDevice, Service
from devlet.testing.node_process import devices_in_status
from devlet.testing.waiting import until
from tests.support.claim_node import CLAIMS, ClaimNode, claim_pod, container, given, on_node
from tests.support.node_drivers import NodeDrivers

pytestmark = [pytest.mark.anyio]


def with_containers(document: Document, *containers: Document, init: bool = False) -> Document:
    """Return the pod with these containers before its own, or as its init containers."""
    spec = document["spec"]
    if init:
        return {**document, "spec": {**spec, "initContainers": list(containers)}}
    return {**document, "spec": {**spec, "containers": [*containers, *spec["containers"]]}}


def from_template(document: Document, *entries: str) -> Document:
    """Return the pod with claims that are generated for it."""
    claims = [{"name": entry, "resourceClaimTemplateName": "any"} for entry in entries]
    return {**document, "spec": {**document["spec"], "resourceClaims": claims}}


@pytest.mark.spec("DN-9.3.01")
async def test_a_driver_registers(node: ClaimNode, gpu: FakeDraDriver) -> None:
    assert gpu.statuses == [(True, "")]
    assert (await node.driver_states())[gpu.name]["state"] == "Connected"


@pytest.mark.spec("DN-9.3.03")
async def test_a_pod_that_bypassed_the_scheduler_waits_for_the_allocation_of_its_claim(
    node: ClaimNode, gpu: FakeDraDriver
) -> None:
    await node.add_claim("train")
    await node.create(on_node(claim_pod("train", "train")))
    await node.until_failed("train", "ResourceClaim train is not allocated")
    pod = await node.pod("train") or {}
    assert pod["status"]["phase"] == "Pending"
    assert gpu.asked(PREPARE) == [] and node.claim_checkpoint() == {}
    await node.allocate("train", given(gpu.name))
    await node.until_failed("train", "it is not reserved for the pod")
    await node.reserve("train", pod)
    await node.until_phase("train", "Running")


async def test_a_claim_is_prepared_only_where_its_allocation_allows_it(node: ClaimNode, gpu: FakeDraDriver) -> None:
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["elsewhere"]}]}
    by_label = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}
    await node.add_claim("train")
    await node.allocate("train", given(gpu.name), selector=by_name)
    await node.create(on_node(claim_pod("train", "train")))
    await node.reserve("train", await node.pod("train") or {})
    await node.until_failed("train", "cannot be used on node n1: its allocation requires metadata.name In [elsewhere]")
    assert gpu.asked(PREPARE) == [] and node.claim_checkpoint() == {}
    await node.allocate("train")
    await node.allocate("train", given(gpu.name), selector=by_label)
    await node.reserve("train", await node.pod("train") or {})
    await node.until_phase("train", "Running")


@pytest.mark.spec("DN-9.3.05")
async def test_a_claim_that_no_container_uses_is_prepared(node: ClaimNode, gpu: FakeDraDriver) -> None:
    uid = await node.add_claim("train", given(gpu.name))
    document = claim_pod("train", "train")
    document["spec"]["containers"] = [container("main", [])]
    await node.add_pod(document)
    await node.until_phase("train", "Running")
    assert list(gpu.prepared) == [uid]
    assert await node.containers("train") == {}


@pytest.mark.spec("DN-9.3.06")
async def test_each_container_gets_the_requests_that_it_names(node: ClaimNode, gpu: FakeDraDriver) -> None:
    gpu.set_devices("train", [PreparedDevice("pool", f"dev-{name}", requests=(name,)) for name in ("a", "b")])
    await node.add_claim("train", given(gpu.name, "dev-a", "a"), given(gpu.name, "dev-b", "b"))
    document = claim_pod("train", "train")
    others = [container("with-a", [], train="a"), container("with-b", [], train="b"), container("with-none", [])]
    await node.add_pod(with_containers(document, *others))
    await node.until_phase("train", "Running")
    found = {each: await requests(node, "train", each) for each in ("main", "with-a", "with-b", "with-none")}
    assert found == {"main": {"a", "b"}, "with-a": {"a"}, "with-b": {"b"}, "with-none": set()}


async def requests(node: ClaimNode, pod: str, name: str) -> set[str]:
    """Return the claims that show in the environment of a container."""
    prefix = "CLAIM_train_"
    return {key.removeprefix(prefix) for key in await node.environment(pod, name) if key.startswith(prefix)}


@pytest.mark.spec("DN-9.3.10")
@pytest.mark.parametrize("generated", [False, True])
async def test_an_init_container_gets_the_claim(node: ClaimNode, gpu: FakeDraDriver, generated: bool) -> None:
    document = claim_pod("train", "gpu")
    if generated:
        document = from_template(document, "gpu")
    else:
        await node.add_claim("gpu", given(gpu.name))
    document = with_containers(document, container("init", ["gpu"]), init=True)
    await node.add_pod(document, {"gpu": [given(gpu.name)]})
    await node.until_phase("train", "Running")
    [uid] = gpu.prepared
    assert set((await node.environment("train", "init")).values()) == {uid}


# The end


@pytest.mark.spec("DN-9.3.11")
@pytest.mark.spec("DN-9.3.12")
@pytest.mark.parametrize("generated", [False, True])
async def test_the_claim_of_a_finished_pod_is_unprepared_and_can_be_deleted(
    node: ClaimNode, gpu: FakeDraDriver, generated: bool
) -> None:
    document = claim_pod("train", "gpu", restart="Never", exit_code=0)
    if generated:
        document = from_template(document, "gpu")
    else:
        await node.add_claim("gpu", given(gpu.name))
    await node.add_pod(document, {"gpu": [given(gpu.name)]})
    before = await node.until_phase("train", "Succeeded")
    assert not gpu.prepared
    name = "train-gpu" if generated else "gpu"
    await node.set_status(name, {"reservedFor": None})
    await node.call("DELETE", f"{CLAIMS}/{name}")
    await node.until_forgotten(name)
    assert await node.pod("train") == before
    assert await node.failures("train") == []


@pytest.mark.spec("DN-9.3.13")
async def test_a_container_that_restarts_keeps_its_claim(node: ClaimNode, gpu: FakeDraDriver) -> None:
    await node.add_claim("train", given(gpu.name))
    await node.add_pod(claim_pod("train", "train", run_for="100ms", exit_code=1))
    await node.until_pod("train", lambda pod: restarts(pod) >= 1)
    assert "CLAIM_train" in await node.environment("train")
    assert [call.method for call in gpu.calls if call.claims] == [PREPARE]


def restarts(document: dict[str, Any]) -> int:
    statuses = document.get("status", {}).get("containerStatuses") or [{}]
    return int(statuses[0].get("restartCount", 0))


# Parameters


@pytest.mark.spec("DN-9.3.18")
async def test_the_parameters_of_claim_and_class_reach_the_container(node: ClaimNode, gpu: FakeDraDriver) -> None:
    """The node sends no parameters; the driver reads the claim that the node names."""
    values: dict[str, str] = {}

    async def read(claim: Any) -> None:
        status = (await node.call("GET", f"{CLAIMS}/{claim.name}"))["status"]
        for each in status["allocation"]["devices"]["config"]:
            word = {"FromClaim": "user", "FromClass": "admin"}[each["source"]]
            values.update({f"{word}_{key}": value for key, value in each["opaque"]["parameters"].items()})

    def parameters(source: str, **values: str) -> Document:
        return {"source": source, "requests": ["req"], "opaque": {"driver": gpu.name, "parameters": values}}

    gpu.handler = read
    gpu.prepared.environment = lambda claim, device: values
    await node.add_claim("train")
    config = [parameters("FromClass", a="1"), parameters("FromClaim", a="2", b="3")]
    allocation = {"devices": {"results": [given(gpu.name, "dev-train")], "config": config}}
    await node.set_status("train", {"allocation": allocation})
    await node.add_pod(claim_pod("train", "train"))
    await node.until_phase("train", "Running")
    assert await node.environment("train") == {"admin_a": "1", "user_a": "2", "user_b": "3"}


# Claims and pods, few and many


@pytest.mark.spec("DN-9.3.19")
async def test_five_pods_take_turns_on_one_device(node: ClaimNode, gpu: FakeDraDriver) -> None:
    for number in range(5):
        name = f"train-{number}"
        await node.run_pod(name, gpu.name)
        assert [each.claim.name for each in gpu.prepared.values()] == [name]
        await node.delete(name)
        assert not gpu.prepared
    assert [call.method for call in gpu.calls if call.claims] == [PREPARE, UNPREPARE] * 5


@pytest.mark.spec("DN-9.3.20")
async def test_five_pods_share_one_claim_which_is_prepared_once_and_unprepared_with_the_last(
    node: ClaimNode, gpu: FakeDraDriver
) -> None:
    uid = await node.add_claim("shared", given(gpu.name))
    pods = [f"train-{number}" for number in range(5)]
    for name in pods:
        await node.add_pod(claim_pod(name, "shared"))
    for name in pods:
        await node.until_phase(name, "Running")
        assert await node.environment(name) == {"CLAIM_shared": uid}
    assert len(gpu.asked(PREPARE)) == 1
    await node.delete(*pods[:4])
    assert gpu.asked(UNPREPARE) == [] and list(gpu.prepared) == [uid]
    await node.delete(pods[4])
    assert len(gpu.asked(UNPREPARE)) == 1


@pytest.mark.spec("DN-9.3.21")
async def test_a_pod_whose_template_needs_no_claim_runs(node: ClaimNode, gpu: FakeDraDriver) -> None:
    await node.add_pod(from_template(claim_pod("train", "gpu"), "gpu"))
    await node.until_phase("train", "Running")
    assert gpu.asked(PREPARE) == []
    assert await node.containers("train") == {}


@pytest.mark.spec("DN-9.3.22")
@pytest.mark.parametrize("containers", [1, 3])
async def test_each_pod_gets_a_claim_that_its_containers_use(
    node: ClaimNode, gpu: FakeDraDriver, containers: int
) -> None:
    more = [container(f"more-{number}", ["gpu"]) for number in range(containers - 1)]
    for name in ("a", "b"):
        document = from_template(with_containers(claim_pod(name, "gpu"), *more), "gpu")
        await node.add_pod(document, {"gpu": [given(gpu.name, f"dev-{name}")]})
    for name in ("a", "b"):
        await node.until_phase(name, "Running")
        uid = node.claim_checkpoint()[f"{name}-gpu"].uid
        found = await node.containers(name)
        assert len(found) == containers
        for each in found:
            assert await node.environment(name, each) == {f"CLAIM_{name}_gpu": uid}
    assert len(gpu.prepared) == 2


@pytest.mark.spec("DN-9.3.22")
@pytest.mark.parametrize("pods", [1, 2])
@pytest.mark.parametrize("containers", [1, 3])
async def test_containers_of_several_pods_use_one_claim(
    node: ClaimNode, gpu: FakeDraDriver, pods: int, containers: int
) -> None:
    uid = await node.add_claim("gpu", given(gpu.name))
    more = [container(f"more-{number}", ["gpu"]) for number in range(containers - 1)]
    names = [f"train-{number}" for number in range(pods)]
    for name in names:
        await node.add_pod(with_containers(claim_pod(name, "gpu"), *more))
    for name in names:
        await node.until_phase(name, "Running")
        found = await node.containers(name)
        assert len(found) == containers
        for each in found:
            assert await node.environment(name, each) == {"CLAIM_gpu": uid}
    assert len(gpu.asked(PREPARE)) == 1


@pytest.mark.spec("DN-9.3.24")
async def test_a_pod_has_a_device_of_a_plugin_and_one_of_a_claim(node: ClaimNode, gpu: FakeDraDriver) -> None:
    async with FakeDevicePlugin(node.plugins, "vendor.com/fpga", 1, follow=True):
        await node.until_healthy("vendor.com/fpga", 1)
        uid = await node.add_claim("train", given(gpu.name))
        document = claim_pod("train", "train")
        document["spec"]["containers"][0]["resources"]["limits"] = {"vendor.com/fpga": "1"}
        await node.add_pod(document)
        found = devices_in_status(await node.until_phase("train", "Running"))
        assert list(found) == ["vendor.com/fpga", "claim:train"]
        main = (await node.containers("train"))["main"]
        assert main["devices"] == [{"resource": "vendor.com/fpga", "ids": ["dev-0"]}]
        assert (await node.environment("train"))["CLAIM_train"] == uid
        await node.delete("train")
        assert await node.held() == {} and not gpu.prepared


@pytest.mark.spec("DN-9.3.25")
async def test_a_pod_with_a_prepared_claim_and_a_new_one_runs(node: ClaimNode, gpu: FakeDraDriver) -> None:
    old = await node.add_claim("old", given(gpu.name))
    await node.add_pod(claim_pod("first", "old"))
    await node.until_phase("first", "Running")
    new = await node.add_claim("new", given(gpu.name, "dev-1"))
    await node.add_pod(claim_pod("second", "old", "new"))
    await node.until_phase("second", "Running")
    assert await node.environment("second") == {"CLAIM_old": old, "CLAIM_new": new}
    assert [call.names for call in gpu.asked(PREPARE)] == [("old",), ("new",)]
    await node.delete("second")
    assert list(gpu.prepared) == [old]


@pytest.mark.spec("DN-9.3.26")
@pytest.mark.parametrize("services", [(Service.V1BETA1,), (Service.V1,), (Service.V1BETA1, Service.V1)])
async def test_several_drivers_and_claims_in_one_pod_in_each_version_of_the_api(
    node: ClaimNode, drivers: NodeDrivers, services: tuple[Service, ...]
) -> None:
    gpu, nic = [await drivers.start(name, services=services) for name in ("gpu", "nic")]
    await node.add_claim("a", given(gpu.name, "dev-0", "x"), given(nic.name, "dev-0", "y"))
    await node.add_claim("b", given(nic.name, "dev-1", "x"), given(gpu.name, "dev-1", "y"))
    await node.add_pod(claim_pod("train", "a", "b"))
    await node.until_phase("train", "Running")
    found = (await node.containers("train"))["main"]["claims"]
    pairs = {(each["claim"], each["driver"]) for each in found}
    assert pairs == {(claim, driver.name) for claim in ("a", "b") for driver in (gpu, nic)}
    for driver in (gpu, nic):
        [call] = driver.asked(PREPARE)
        assert set(call.names) == {"a", "b"}
        assert call.service == max(services, key=[Service.V1BETA1, Service.V1].index)


# Pod groups


@pytest.mark.spec("DN-9.3.28")
@pytest.mark.parametrize("generated", [False, True])
async def test_with_the_feature_gate_a_claim_may_belong_to_the_pod_group(root: Path, generated: bool) -> None:
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "team", "uid": "team-uid"}
    owner = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "name": "team", "uid": "team-uid"}
    gates = "featureGates:\n  DRAWorkloadResourceClaims: true\n"
    async with ClaimNode(root, gates) as node, FakeDraDriver(root) as gpu:
        uid = await node.add_claim("team", given(gpu.name), owner={**owner, "controller": True} if generated else None)
        await node.reserve("team", group)
        document = claim_pod("train", "team")
        document["spec"]["schedulingGroup"] = {"podGroupName": "team"}
        if generated:
            document = from_template(document, "team")
        created = await node.call("POST", "/api/v1/namespaces/default/pods", document)
        assert created["spec"]["schedulingGroup"] == {"podGroupName": "team"}
        if generated:
            status = {"resourceClaimStatuses": [{"name": "team", "resourceClaimName": "team"}]}
            path = "/api/v1/namespaces/default/pods/train/status"
            await node.call("PATCH", path, {"status": status}, "application/merge-patch+json")
        await node.bind("train")
        await node.until_phase("train", "Running")
        assert await node.environment("train") == {"CLAIM_team": uid}
        await node.delete("train")
        await until(partial(unprepared, gpu))


async def unprepared(driver: FakeDraDriver) -> bool:
    return not driver.prepared
