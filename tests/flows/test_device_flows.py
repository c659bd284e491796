"""Device plugins and pods on a whole node, a real process: either side is restarted or killed, in every order."""

import json
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from devlet.cluster.client import DeleteOptions
from devlet.cluster.store.store import open_store
from devlet.kit.processes import RunningProcess
from devlet.objects.identifiers import DeviceID
from devlet.objects.kinds import PODS
from devlet.plugins.devices import Device, Options
from devlet.runtime.none import EXIT_CODE
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.node_process import NodeProcess, devices_in_status, plugin_process, pod
from devlet.testing.waiting import until

pytestmark = [pytest.mark.anyio]

GPU = "vendor.com/gpu"
WAITS = "WaitingForDevicePlugin"
MOMENTS = 60.0  # seconds


@pytest.fixture
async def node(root: Path) -> AsyncIterator[NodeProcess]:
    async with NodeProcess(root) as node:
        yield node


@asynccontextmanager
async def gpus(node: NodeProcess, devices: int = 2) -> AsyncIterator[FakeDevicePlugin]:
    """A plugin that registers by itself as soon as it can."""
    async with FakeDevicePlugin(node.plugins, GPU, devices, follow=True) as plugin:
        await node.until_healthy(GPU, devices)
        yield plugin


async def run(node: NodeProcess, name: str, **annotations: str) -> set[str]:
    """Run a pod with one GPU, and return the GPU that it got."""
    await node.create(pod(name, {GPU: 1}, **annotations))
    return set(devices_in_status(await node.until_phase(name, "Running"))[GPU])


async def has(node: NodeProcess, name: str) -> set[str]:
    """Return the devices of a pod, after checking that all sources agree."""
    shown = (await node.held()).get(name, {}).get(GPU, set())
    document = await node.pod(name) or {}
    assert set(devices_in_status(document).get(GPU, {})) == shown
    found = (await node.holders()).get(name, {"devices": [{"ids": []}]})
    assert set(found["devices"][0]["ids"]) == shown
    written = [entry for entry in node.checkpoint().entries or () if entry.pod == document["metadata"]["uid"]]
    assert {id for entry in written for ids in (entry.devices or {}).values() for id in ids or ()} == shown
    return shown


def write_specs(node: NodeProcess, *devices: str) -> None:
    edits = [{"name": id, "containerEdits": {"env": [f"GPU_{id}=1"]}} for id in devices]
    spec = {"cdiVersion": "0.5.0", "kind": GPU, "containerEdits": {"env": ["DRIVER=7"]}, "devices": edits}
    (node.root / "cdi").mkdir(exist_ok=True)
    (node.root / "cdi" / "gpu.json").write_text(json.dumps(spec))


def restarts(document: dict[str, Any]) -> int:
    return int(document["status"]["containerStatuses"][0]["restartCount"])


def waiting(document: dict[str, Any]) -> str:
    statuses = document.get("status", {}).get("containerStatuses") or [{}]
    return str(statuses[0].get("state", {}).get("waiting", {}).get("reason", ""))


async def allocatable(node: NodeProcess) -> tuple[str | None, str | None]:
    """Return the capacity and the allocatable number in the Node object."""
    status = (await node.call("GET", "/api/v1/nodes/n1"))["status"]
    return status["capacity"].get(GPU), status["allocatable"].get(GPU)


async def until_allocatable(node: NodeProcess, number: int) -> None:
    await until(partial(allocatable, node), lambda found: found == (str(number), str(number)))


# Restarts


@pytest.mark.spec("DP-8.76")
@pytest.mark.parametrize(
    "what",
    [
        "container",
        "plugin",
        "devlet and plugin",
        *(pytest.param(what, marks=pytest.mark.long) for what in ("devlet", "devlet and container")),
    ],
)
async def test_a_pod_keeps_its_device_whatever_is_restarted(node: NodeProcess, what: str) -> None:
    async with gpus(node) as plugin:
        before = await run(node, "first", **({"run_for": "1s"} if "container" in what else {}))
        if "devlet" in what:
            await node.kill()
        if "plugin" in what:
            await plugin.crash()
            await plugin.start()
            if "devlet" not in what:
                await plugin.register()
        if "devlet" in what:
            await node.start()
        await node.until_healthy(GPU, 2)
        if "container" in what:
            await node.until_pod("first", lambda pod: restarts(pod) >= 1)
        else:
            assert restarts(await node.until_phase("first", "Running")) == 0
        assert await until_has(node, "first", before)
        second = await run(node, "second")
        assert len(before | second) == 2
        assert await has(node, "first") == before
        assert await node.events("Failed") == []


async def until_has(node: NodeProcess, name: str, devices: set[str]) -> set[str]:
    """Wait until the pod's status has these devices, and compare all records."""
    await node.until_pod(name, lambda pod: set(devices_in_status(pod).get(GPU, {})) == devices)
    return await has(node, name)


@pytest.mark.long
@pytest.mark.spec("DP-8.77")
async def test_a_pod_that_succeeded_is_left_alone_after_a_restart_without_the_plugin(node: NodeProcess) -> None:
    async with gpus(node):
        await node.create(pod("done", {GPU: 1}, restart="Never", exit_code=0))
        before = await node.until_phase("done", "Succeeded")
    await node.kill()
    await node.start()
    await node.create(pod("later", {}))
    await node.until_phase("later", "Running")
    assert await node.pod("done") == before
    assert await node.held() == {}


@pytest.mark.long
@pytest.mark.spec("DP-8.78")
@pytest.mark.spec("DP-9.10")
async def test_after_a_reboot_a_pod_whose_plugin_does_not_come_back_is_rejected(root: Path) -> None:
    async with NodeProcess(root, "timeouts:\n  pluginGrace: 3s\n") as node:
        async with gpus(node):
            await run(node, "first")
            await node.stop()
        node.reboot()
        await node.start()
        rejected = await node.until_phase("first", "Failed")
        assert rejected["status"]["reason"] == "UnexpectedAdmissionError"
        assert GPU in rejected["status"]["message"]
        assert await node.until_event(WAITS, GPU)
        assert await node.held() == {}
        assert await node.holders() == {}
        await until(written(node), lambda entries: entries == ())


def written(node: NodeProcess) -> Any:
    async def read() -> Any:
        return node.checkpoint().entries or ()

    return read


@pytest.mark.long
@pytest.mark.spec("DP-9.10")
async def test_after_a_reboot_a_pod_waits_for_its_plugin_and_runs_again(node: NodeProcess) -> None:
    async with gpus(node):
        await run(node, "first")
        await node.stop()
    node.reboot()
    await node.start()
    await node.until_pod("first", lambda pod: waiting(pod) == WAITS)
    async with gpus(node):
        after = await node.until_pod("first", lambda pod: restarts(pod) == 1 and not waiting(pod))
        assert len(await until_has(node, "first", set(devices_in_status(after)[GPU]))) == 1


@pytest.mark.long
@pytest.mark.spec("DP-9.10")
async def test_a_new_pod_waits_for_a_plugin_from_before_the_restart(node: NodeProcess) -> None:
    async with gpus(node):
        await node.kill()
    await node.start()
    await node.create(pod("early", {GPU: 1}), pod("other", {}))
    await node.until_phase("other", "Running")
    early = await node.until_pod("early", lambda pod: waiting(pod) == WAITS)
    assert early["status"]["phase"] == "Pending"
    event = await node.until_event(WAITS)
    assert event["message"] == f"waiting for the device plugins of {GPU}, which have not listed their devices yet"
    async with gpus(node):
        await node.until_phase("early", "Running")
        assert len(await has(node, "early")) == 1


@pytest.mark.parametrize("holders", [0, 1])
async def test_after_damage_nothing_is_allocatable_and_no_pod_runs_without_its_devices(
    root: Path, holders: int
) -> None:
    async with NodeProcess(root, control=True) as node:
        async with gpus(node, 4):
            await until_allocatable(node, 4)
            before = [await run(node, f"holder{number}") for number in range(holders)]
            await node.kill()
        file = node.plugins / "kubelet_internal_checkpoint"
        file.write_bytes(file.read_bytes()[:-30])
        await node.start()
        await until_allocatable(node, 0)
        new = pod("new", {GPU: 2})
        if not holders:
            del new["spec"]["nodeName"]  # a pod that is put on a node which has none of its resource is rejected
        await node.create(new)
        waits = await node.until_event(WAITS if holders else "FailedScheduling")
        assert waits["involvedObject"]["name"] == "new"
        assert not devices_in_status(await node.until_phase("new", "Pending"))
        async with gpus(node, 4):
            after = set(devices_in_status(await node.until_phase("new", "Running"))[GPU])
            assert len(after) == 2 and after.isdisjoint(set[str]().union(*before))
            await until_allocatable(node, 4)
            assert [await has(node, f"holder{number}") for number in range(holders)] == before


@pytest.mark.long
@pytest.mark.spec("DP-8.79")
async def test_devices_of_pods_that_were_deleted_meanwhile_are_free(node: NodeProcess) -> None:
    async with gpus(node):
        await run(node, "gone")
        kept = await run(node, "stays")
        await node.kill()
        async with open_store(node.root / "cluster.db") as store:
            await store.delete(PODS, "gone", "default", DeleteOptions(0))
        await node.start()
        await node.until_healthy(GPU, 2)
        assert await node.held() == {"stays": {GPU: kept}}
        assert len(node.checkpoint().entries or ()) == 1
        assert await run(node, "next") == {"dev-0", "dev-1"} - kept


@pytest.mark.long
@pytest.mark.spec("DP-8.80")
async def test_cdi_names_are_what_the_container_gets_also_after_a_restart(node: NodeProcess) -> None:
    write_specs(node, "dev-0", "dev-1")
    async with gpus(node) as plugin:
        plugin.grant = plugin.cdi_grant
        [device] = await run(node, "first")
        expected = {"cdiDevices": [f"{GPU}={device}"]}
        assert (await node.holders())["first"]["options"] == expected
        await node.kill()
        await node.start()
        assert (await node.holders())["first"]["options"] == expected


@pytest.mark.long
@pytest.mark.spec("DN-7.3.4")
async def test_a_container_waits_until_its_cdi_device_can_be_resolved_and_gets_the_same_after_a_restart(
    node: NodeProcess,
) -> None:
    async with gpus(node) as plugin:
        plugin.grant = plugin.cdi_grant
        await node.create(pod("first", {GPU: 2}))

        async def state() -> str:
            statuses = (await node.pod("first") or {}).get("status", {}).get("containerStatuses") or [{}]
            return str(statuses[0].get("state", {}))

        told = await until(state, lambda text: "unresolvable" in text)
        assert f"{GPU}=dev-0: no such device" in told and f"read from /etc/cdi, /var/run/cdi, {node.root}/cdi" in told
        [note] = (await node.holders())["first"]["notes"]
        assert note.startswith(f"cannot be started: unresolvable CDI devices {GPU}=dev-0, {GPU}=dev-1")
        write_specs(node, "dev-0", "dev-1")

        async def nudged() -> str:
            plugin.set_devices(2 + len(plugin.devices) % 2)  # or else it is tried again in a while
            return await state()

        await until(nudged, lambda text: "running" in text)
        expected = {"process": {"env": ["DRIVER=7", "GPU_dev-0=1", "GPU_dev-1=1"]}}
        assert (await node.holders())["first"]["oci"] == expected
        await node.kill()
        await node.start()
        assert (await node.holders())["first"]["oci"] == expected


# Health


@pytest.mark.spec("DP-8.19")
@pytest.mark.spec("DP-8.22")
async def test_an_unhealthy_device_shows_in_the_pod_which_keeps_running(node: NodeProcess) -> None:
    async with gpus(node) as plugin:
        [device] = await run(node, "first")
        await until(lambda: allocatable(node), lambda found: found == ("2", "2"))
        plugin.set_devices(ill(device))
        document = await node.until_pod("first", lambda pod: devices_in_status(pod)[GPU] == {device: "Unhealthy"})
        await until(lambda: allocatable(node), lambda found: found == ("2", "1"))
        assert document["status"]["phase"] == "Running"
        assert restarts(document) == 0
        plugin.set_devices(2)
        await node.until_pod("first", lambda pod: devices_in_status(pod)[GPU] == {device: "Healthy"})
        await until(lambda: allocatable(node), lambda found: found == ("2", "2"))


@pytest.mark.spec("DP-8.22")
async def test_a_pod_that_fails_with_an_unhealthy_device_keeps_showing_it(node: NodeProcess) -> None:
    async with gpus(node) as plugin:
        await node.create(pod("first", {GPU: 1}, restart="Never"))
        [device] = devices_in_status(await node.until_phase("first", "Running"))[GPU]
        plugin.set_devices(ill(device))
        await node.until_pod("first", lambda pod: devices_in_status(pod)[GPU] == {device: "Unhealthy"})
        await node.annotate("first", EXIT_CODE, "1")
        failed = await node.until_phase("first", "Failed")
        assert devices_in_status(failed)[GPU] == {device: "Unhealthy"}
        assert await node.held() == {}


def ill(device: str) -> list[Device]:
    return [Device(DeviceID(id), "Unhealthy" if id == device else "Healthy") for id in ("dev-0", "dev-1")]


async def test_a_plugin_that_is_gone_makes_the_health_of_held_devices_unknown(node: NodeProcess) -> None:
    async with gpus(node) as plugin:
        [device] = await run(node, "first")
        await plugin.crash()
        document = await node.until_pod("first", lambda pod: devices_in_status(pod)[GPU] == {device: "Unknown"})
        assert document["status"]["phase"] == "Running"
        await plugin.start()
        await node.until_pod("first", lambda pod: devices_in_status(pod)[GPU] == {device: "Healthy"})


# Who comes first


@pytest.mark.parametrize("registry", [False, pytest.param(True, marks=pytest.mark.long)])
async def test_a_plugin_may_start_before_devlet(root: Path, registry: bool) -> None:
    node = NodeProcess(root)
    async with plugin_in(node, registry):
        async with node:
            await node.until_healthy(GPU, 2)
            await run(node, "first")


@pytest.mark.spec("DP-8.02")
@pytest.mark.parametrize("registry", [False, pytest.param(True, marks=pytest.mark.long)])
async def test_a_plugin_is_found_again_after_each_restart_of_devlet(node: NodeProcess, registry: bool) -> None:
    async with plugin_in(node, registry):
        await node.until_healthy(GPU, 2)
        before = await run(node, "first")
        for end in (node.stop, node.kill):
            await end()
            await node.start()
            await node.until_healthy(GPU, 2)
            assert await has(node, "first") == before


def plugin_in(node: NodeProcess, registry: bool) -> FakeDevicePlugin:
    if registry:
        return FakeDevicePlugin(node.registry, GPU, 2, registry=node.registry)
    return FakeDevicePlugin(node.plugins, GPU, 2, follow=True)


@pytest.mark.spec("DP-8.06")
@pytest.mark.parametrize("registry", [False, pytest.param(True, marks=pytest.mark.long)])
async def test_the_newest_instance_is_used_and_its_predecessor_after_it(node: NodeProcess, registry: bool) -> None:
    directory = node.registry if registry else node.plugins
    found = node.registry if registry else None

    def instance(name: str, devices: int | list[Device]) -> FakeDevicePlugin:
        options = Options(pre_start=True, preferred_allocation=True)
        return FakeDevicePlugin(
            directory, GPU, devices, socket=name, registry=found, follow=not registry, options=options
        )

    async with instance("a.sock", 2) as first:
        await node.until_healthy(GPU, 2)
        async with instance("b.sock", 2) as second:
            await second.until_registered()
            await node.until_healthy(GPU, 2)
            async with instance("c.sock", [Device(DeviceID("other"))]) as third:
                await node.until_healthy(GPU, 1)
                assert await run(node, "first") == {"other"}
                assert [len(each.asked("Allocate")) for each in (first, second, third)] == [0, 0, 1]
                assert [len(each.asked("PreStartContainer")) for each in (first, second, third)] == [0, 0, 1]
            await node.until_healthy(GPU, 2)
        assert await run(node, "second") <= {"dev-0", "dev-1"}


@pytest.mark.spec("DP-8.58")
async def test_a_plugin_in_the_registry_is_known_as_long_as_its_socket_exists(node: NodeProcess) -> None:
    async with FakeDevicePlugin(node.registry, GPU, 2, registry=node.registry) as plugin:
        await node.until_healthy(GPU, 2)
        assert plugin.statuses == [(True, "")]
        await until(lambda: allocatable(node), lambda found: found == ("2", "2"))
    await until(lambda: allocatable(node), lambda found: found == ("2", "0"))
    await until(node.plugin_states, lambda states: states.get("vendor.com:gpu", {}).get("state") != "Connected")


async def test_a_file_in_place_of_the_registration_socket_is_reported_by_the_health_check(node: NodeProcess) -> None:
    assert (await node.read("/healthz"))[0] == 200
    (node.root / "file").touch()
    (node.root / "file").rename(node.plugins / "kubelet.sock")
    code, text = await node.read("/healthz?verbose")
    assert code == 500
    assert "[-]device-plugin failed" in text


# Kill -9


ORDERS = {
    "devlet": ["kill devlet", "start devlet"],
    "the plugin": ["kill plugin", "start plugin"],
    "devlet and the plugin, devlet is back first": ["kill devlet", "kill plugin", "start devlet", "start plugin"],
    "devlet and the plugin, devlet is back last": ["kill devlet", "kill plugin", "start plugin", "start devlet"],
    "the plugin and devlet, devlet is back first": ["kill plugin", "kill devlet", "start devlet", "start plugin"],
    "the plugin and devlet, devlet is back last": ["kill plugin", "kill devlet", "start plugin", "start devlet"],
    "devlet, and the plugin after its return": ["kill devlet", "start devlet", "kill plugin", "start plugin"],
    "the plugin, and devlet after its return": ["kill plugin", "start plugin", "kill devlet", "start devlet"],
}


@pytest.mark.long
@pytest.mark.parametrize("registry", [False, True])
async def test_a_pod_keeps_its_device_in_whatever_order_either_side_is_killed(
    node: NodeProcess, registry: bool
) -> None:
    async with AsyncExitStack() as stack:

        async def start_plugin() -> RunningProcess:
            return await stack.enter_async_context(plugin_process(node, GPU, 2, watched=registry))

        plugin = await start_plugin()
        await node.until_healthy(GPU, 2)
        before = await run(node, "first")
        for killed, steps in ORDERS.items():
            for step in steps:
                match step:
                    case "kill devlet":
                        await node.kill()
                    case "start devlet":
                        await node.start()
                    case "kill plugin":
                        plugin.send_signal(signal.SIGKILL)
                        await plugin.wait()
                    case "start plugin":
                        plugin = await start_plugin()
            began = time.monotonic()
            await node.until_healthy(GPU, 2, within=MOMENTS)
            print(f"{killed}: back after {time.monotonic() - began:.2f} s")  # noqa: T201 (shown when the test fails)
            assert await until_has(node, "first", before)
        second = await run(node, "second")
        assert len(before | second) == 2
