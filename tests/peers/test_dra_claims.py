"""Unmodified DRA drivers prepare claims on a devlet node: what they answer is on disk, the container gets it, everyone
who asks is told of it, and nothing of it is left afterwards."""

import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from devlet.runtime.cdi.cache import Cache
from devlet.testing.waiting import until
from tests.support.claim_node import CLAIMS, claim_pod, container
from tests.support.peers.hooked_driver import HookedDriver, Method
from tests.support.peers.peer_node import EXAMPLE, TEST, PeerNode, device

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

PLAIN = "plain.cdi.k8s.io"
SHARES = ("6f0b1ef0-7c5c-4b1a-9a2c-2c5f2ab7b1b0", "0c9e6c1e-54c1-4b9f-8f0a-9d1f3f1c2d3e")


@pytest.fixture(scope="module")
async def drivers(peers: "Peers") -> AsyncIterator[tuple[PeerNode, HookedDriver]]:
    """A node with all three drivers, and the one with hooks."""
    peers.need("dra-example-kubeletplugin", "test-driver", "kubelet-claims", "kubelet-devices")
    root = Path(tempfile.mkdtemp(prefix="dv"))
    async with (
        PeerNode(root, peers.binaries) as node,
        node.example_driver(num_devices=4),
        node.plain_test_driver(driver_name=PLAIN),
        node.test_driver() as hooked,
    ):
        await node.until_up(EXAMPLE, PLAIN, TEST)
        yield node, hooked.running
    shutil.rmtree(root)


@pytest.fixture
async def node(drivers: tuple[PeerNode, HookedDriver]) -> AsyncIterator[PeerNode]:
    """After the test it has nothing prepared."""
    node, hooked = drivers
    await hooked.forget_calls()
    yield node
    await node.leave_nothing(hooked)


@pytest.fixture
def hooked(drivers: tuple[PeerNode, HookedDriver]) -> HookedDriver:
    return drivers[1]


def resolved(node: PeerNode, devices: list[str]) -> list[str]:
    """The files that define these CDI devices. All files of the folder are valid."""
    registry = Cache((node.root / "cdi",)).refresh()
    assert not registry.errors
    return sorted({known.file.path.name for known in registry.resolve(devices).complete()})


# Prepare and unprepare


@pytest.mark.spec("DN-9.2.18")
async def test_devices_of_three_drivers_in_one_claim_are_in_files_that_go_with_it(
    node: PeerNode, hooked: HookedDriver
) -> None:
    uid = await node.run("train", device(EXAMPLE, "gpu-2", "a"), device(PLAIN, "", "b"), device(TEST, "", "c"))
    main = (await node.containers("train"))["main"]
    devices = [each for claim in main["claims"] for each in claim["cdiDevices"]]
    assert devices == [
        f"k8s.{EXAMPLE}/gpu=common",
        f"k8s.{EXAMPLE}/gpu={uid}-gpu-2",
        f"{PLAIN}/test=claim-{uid}-b",
        f"{TEST}/test=claim-{uid}-c",
    ]
    files = [f"k8s.{EXAMPLE}-gpu_{uid}.yaml", f"{PLAIN}-{uid}-b.json", f"{TEST}-{uid}-c.json"]
    assert resolved(node, devices) == sorted([f"k8s.{EXAMPLE}-gpu_common.yaml", *files])
    env = await node.environment("train")
    wanted = {"GPU_DEVICE_2": "gpu-2", "GPU_DEVICE_GPU_2_RESOURCE_CLAIM": uid, "DRA_RESOURCE_DRIVER_NAME": EXAMPLE}
    assert wanted | {"claim_train_b": "true", "claim_train_c": "true"} == {
        name: value for name, value in env.items() if name in wanted or name.startswith("claim_")
    }
    assert [claim.uid for claim in await hooked.prepared()] == [uid] == node.example_claims()
    await node.finish("train")
    await node.until_phase("train", "Succeeded")
    assert (node.specs(), await hooked.prepared(), node.example_claims()) == (set(), [], [])


@pytest.mark.spec("DN-9.3.05")
async def test_a_claim_that_no_container_uses_is_prepared(node: PeerNode, hooked: HookedDriver) -> None:
    uid = await node.add_claim("idle", device(TEST))
    document = claim_pod("train", "idle")
    document["spec"]["containers"] = [container("main", [])]
    await node.add_pod(document)
    await node.until_phase("train", "Running")
    assert [claim.uid for claim in await hooked.prepared()] == [uid]
    assert await node.environment("train") == {}


@pytest.mark.spec("DN-9.3.06")
@pytest.mark.spec("DN-9.3.10")
@pytest.mark.spec("DN-9.3.18")
async def test_parameters_and_requests_reach_the_containers_that_they_are_for(node: PeerNode) -> None:
    def config(source: str, requests: list[str], **values: str) -> dict[str, Any]:
        return {"source": source, "requests": requests, "opaque": {"driver": TEST, "parameters": values}}

    await node.add_claim("train", requests=["a", "b/sub"])
    results = [device(TEST, "device-00", "a"), device(TEST, "device-01", "b/sub")]
    configs = [config("FromClass", [], x="class"), config("FromClaim", ["b"], y="b"), config("FromClaim", ["a"], y="a")]
    await node.set_status("train", {"allocation": {"devices": {"results": results, "config": configs}}})
    document = claim_pod("train", "train")
    both, one, none = container("both", ["train"]), container("one", [], train="a"), container("none", [])
    document["spec"]["containers"] = [both, one, none]
    document["spec"]["initContainers"] = [container("first", [], train="b") | {"restartPolicy": "Always"}]
    await node.add_pod(document)
    await node.until_phase("train", "Running")
    a, b = {"claim_train_a": "true"}, {"claim_train_b": "true"}
    assert await node.environment("train", "one") == {"admin_x": "class", "user_y": "a"} | a
    assert await node.environment("train", "first") == {"admin_x": "class", "user_y": "b"} | b
    assert await node.environment("train", "both") == {"admin_x": "class", "user_y": "b"} | a | b
    assert await node.environment("train", "none") == {}


@pytest.mark.spec("DN-9.3.20")
async def test_five_pods_that_share_a_claim_have_it_prepared_once(node: PeerNode, hooked: HookedDriver) -> None:
    pods = [f"p{number}" for number in range(5)]
    uid = await node.add_claim("shared", device(TEST))
    for name in pods:
        await node.add_pod(claim_pod(name, "shared"))
    for name in pods:
        await node.until_phase(name, "Running")
        assert await node.environment(name) == {"claim_shared_req": "true"}
    await node.delete(*pods[1:])
    assert [claim.uid for claim in await hooked.prepared()] == [uid]
    await node.delete(pods[0])
    calls = [call.method.rpartition("/")[2] for call in await hooked.calls()]
    assert calls == [Method.PREPARE, Method.UNPREPARE]


@pytest.mark.spec("DN-9.3.22")
async def test_one_pod_has_several_claims_in_several_containers(node: PeerNode, hooked: HookedDriver) -> None:
    await node.add_claim("gpu", device(EXAMPLE))
    await node.add_claim("net", device(TEST))
    document = claim_pod("train", "gpu", "net")
    document["spec"]["containers"] = [container("a", ["gpu"]), container("b", ["gpu", "net"])]
    await node.add_pod(document)
    await node.until_phase("train", "Running")
    a, b = await node.environment("train", "a"), await node.environment("train", "b")
    assert a["GPU_DEVICE_0"] == b["GPU_DEVICE_0"] == "gpu-0"
    assert ("claim_net_req" in a, "claim_net_req" in b) == (False, True)


@pytest.mark.spec("DN-9.2.36")
@pytest.mark.parametrize("shares", [SHARES[:1], SHARES], ids=["one share", "two shares"])
async def test_shares_go_to_the_driver_and_come_back(
    node: PeerNode, hooked: HookedDriver, shares: tuple[str, ...]
) -> None:
    """The driver's files are per request, so a share each has one of its own."""
    await node.run("train", *(device(TEST, "device-00", f"r{n}", share=share) for n, share in enumerate(shares)))
    [driver] = (await node.prepared())["train"]["drivers"]
    assert sorted(each["shareID"] for each in driver["devices"]) == sorted(shares)
    assert {each["device"] for each in driver["devices"]} == {"device-00"}


@pytest.mark.spec("DN-9.2.17")
@pytest.mark.spec("DN-9.2.30")
async def test_calls_and_health_of_all_pods_use_one_connection(node: PeerNode, hooked: HookedDriver) -> None:
    """The kernel lists an accepted connection under the path of its listener, in state 3."""
    path = str(node.root / "plugins" / TEST / "dra.sock")

    async def accepted() -> list[str]:
        lines = (await anyio.Path("/proc/net/unix").read_text()).splitlines()
        fields = [line.split() for line in lines]
        return [each[6] for each in fields if each[7:] == [path] and each[5] == "03"]

    before = await accepted()
    for name in ("first", "second"):
        await node.run(name, device(TEST))
        await node.finish(name)
        await node.until_phase(name, "Succeeded")
    assert len(await hooked.calls(Method.PREPARE)) == 2
    assert (await accepted(), len(before)) == (before, 1)


# Who is told of it


async def test_the_kubelets_client_of_pod_resources_sees_claims_and_devices(node: PeerNode, peers: "Peers") -> None:
    uid = await node.run("train", device(EXAMPLE, "gpu-1", "a"), device(TEST, "device-03", "b"))
    program, socket = peers.binaries / "kubelet-devices", node.root / "pod-resources" / "kubelet.sock"

    async def ask(*question: str) -> Any:
        return json.loads((await anyio.run_process([program, "pod-resources", socket, *question])).stdout)

    [pod] = (await ask("list"))["pod_resources"]
    [main] = pod["containers"]
    [claim] = main["dynamic_resources"]
    assert (claim["claim_name"], claim["claim_namespace"]) == ("train", "default")
    found = {
        (each["driver_name"], each["pool_name"], each["device_name"]): [one["name"] for one in each["cdi_devices"]]
        for each in claim["claim_resources"]
    }
    assert found == {
        (EXAMPLE, "n1", "gpu-1"): [f"k8s.{EXAMPLE}/gpu=common", f"k8s.{EXAMPLE}/gpu={uid}-gpu-1"],
        (TEST, "n1", "device-03"): [f"{TEST}/test=claim-{uid}-b"],
    }
    assert (await ask("get", "default", "train"))["pod_resources"] == pod


async def test_the_kubelets_own_code_reads_which_claims_are_prepared(node: PeerNode, peers: "Peers") -> None:
    async def read() -> Any:
        folder = Path(tempfile.mkdtemp(dir=node.root))  # it would make the file, if there were none
        shutil.copy(node.root / "dra_manager_state", folder)
        return json.loads(
            (await anyio.run_process([peers.binaries / "kubelet-claims", "checkpoint-read", folder])).stdout
        )

    uids = {name: await node.run(name, device(TEST, name)) for name in ("device-00", "device-01")}
    pods = {name: each["metadata"]["uid"] for name, each in (await node.pods()).items()}
    found = {each["ClaimName"]: each for each in await read()}
    for name, uid in uids.items():
        [prepared] = found[name]["DriverState"][TEST]["Devices"]
        assert (found[name]["ClaimUID"], list(found[name]["PodUIDs"])) == (uid, [pods[name]])
        assert (prepared["DeviceName"], prepared["CDIDeviceIDs"]) == (name, [f"{TEST}/test=claim-{uid}-req"])
    await node.delete("device-00")
    assert [each["ClaimName"] for each in await read()] == ["device-01"]
    await node.delete("device-01")
    assert not await read()


# Versions of the API


@pytest.mark.spec("DN-9.3.26")
@pytest.mark.parametrize("off", ["", "v1", "v1beta1"])
async def test_claims_of_several_drivers_are_prepared_in_each_version_of_the_api(node: PeerNode, off: str) -> None:
    name = "old.cdi.k8s.io"
    flags = [f"--{off}=false"] if off else []
    async with node.test_driver(driver_name=name, flags=flags) as driver:
        await node.until_up(name)
        await node.add_claim("ours", device(name))
        await node.add_claim("theirs", device(EXAMPLE))
        await node.add_pod(claim_pod("train", "ours", "theirs"))
        await node.until_phase("train", "Running")
        env = await node.environment("train")
        assert (env["claim_ours_req"], env["GPU_DEVICE_0"]) == ("true", "gpu-0")
        await node.delete("train")
        used = {call.method for call in await driver.running.calls() if call.method.endswith("Resources")}
        version = "v1beta1" if off == "v1" else "v1"
        assert used == {
            f"/k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin/{method}"
            for method in (Method.PREPARE, Method.UNPREPARE)
        } | {f"/v1alpha1.DRAResourceHealth/{Method.WATCH_HEALTH}"}
        await node.leave_nothing(driver.running)
    await until(node.driver_states, lambda found: found.get(name, {}).get("state") != "Connected")


# What claims go through


@pytest.mark.spec("DN-9.3.07")
async def test_a_claim_of_the_same_name_waits_for_the_end_of_its_predecessor(
    node: PeerNode, hooked: HookedDriver
) -> None:
    old = await node.run("train", device(TEST))
    await hooked.fail(Method.UNPREPARE)
    await node.ask_to_delete("train", force=True)
    await node.call("DELETE", f"{CLAIMS}/train")
    new = await node.submit("train", device(TEST))
    await node.until_failed("train", old)
    assert [claim.uid for claim in await hooked.prepared()] == [old]
    await hooked.unfail(Method.UNPREPARE)
    await node.until_phase("train", "Running")
    assert [claim.uid for claim in await hooked.prepared()] == [new]
    assert node.specs() == {f"{TEST}-{new}-req.json"}


@pytest.mark.spec("DN-9.3.25")
async def test_a_second_pod_has_a_prepared_claim_and_a_new_one(node: PeerNode, hooked: HookedDriver) -> None:
    await node.run("first", device(TEST))
    await node.add_claim("second", device(TEST, "device-01"))
    await node.add_pod(claim_pod("both", "first", "second"))
    await node.until_phase("both", "Running")
    assert set(await node.environment("both")) == {"claim_first_req", "claim_second_req"}
    assert len(await hooked.calls(Method.PREPARE)) == 2


@pytest.mark.spec("DN-9.3.13")
async def test_a_container_that_is_started_again_keeps_its_claim(node: PeerNode, hooked: HookedDriver) -> None:
    await node.add_claim("train", device(TEST))
    await node.add_pod(claim_pod("train", "train", restart="OnFailure", run_for="100ms", exit_code=1))
    await node.until_pod("train", lambda pod: restarts(pod) > 0)
    assert await node.environment("train") == {"claim_train_req": "true"}
    assert await hooked.calls(Method.UNPREPARE) == []


def restarts(pod: dict[str, Any]) -> int:
    statuses = pod.get("status", {}).get("containerStatuses") or [{}]
    return int(statuses[0].get("restartCount", 0))
