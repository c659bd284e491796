"""The roots of earlier releases, killed in the middle of their work, under the present devlet."""

import hashlib
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from devlet.auth import kubeconfigs
from devlet.cluster.client import Cluster, WatchOptions
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.connection import Connection
from devlet.daemon.root_format import FILE, FORMAT
from devlet.errors import Expired, Forbidden
from devlet.objects.documents import Document
from devlet.objects.kinds import CONFIG_MAPS, NODES, SECRETS, Kind, Resource
from devlet.testing import warm_start
from devlet.testing.dra_script import PREPARE, UNPREPARE
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.fake_dra_cluster import allocated, publish
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.node_api import MERGE, PODS
from devlet.testing.node_process import NODE, pod
from devlet.testing.waiting import deadline, until
from tests.flows.old_roots import ARCHIVES, OldRoot, changed, unpack
from tests.support.claim_node import CLAIMS, ClaimNode, claim_pod

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name[:-7])]

RESOURCE, DEVICES = "vendor.com/gpu", 8
GPU, NIC = "gpu.example.com", "nic.example.com"
WIDGETS = Resource(Kind("Widget", "widgets", ("example.com/v1",)), "example.com/v1")
MANIFESTS = "/proc/self/cwd/manifests"  # as in tools/upgrade_life.py
CONFIGURATION = "timeouts:\n  sliceWipeDelay: 1h\n"


@pytest.fixture
def old(archive: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> OldRoot:
    monkeypatch.chdir(root)  # for MANIFESTS
    return unpack(archive, root)


def node_of(old: OldRoot) -> ClaimNode:
    return ClaimNode(old.path, CONFIGURATION, arguments=["--static-pod-path", MANIFESTS], control=True)


async def assert_kept(node: ClaimNode, old: OldRoot) -> None:
    """Assert that everything is there that the clients of the old devlet saw."""
    assert await changed(node, old.kept["objects"]) == []
    assert await held(node) == old.kept["held"]
    prepared = await node.prepared()
    assert {name: each["drivers"] for name, each in prepared.items()} == {
        name: each["drivers"] for name, each in old.kept["prepared"].items()
    }
    assert {name: await node.environment(name) for name in old.kept["environment"]} == old.kept["environment"]
    config = kubeconfigs.read(old.path / "kubeconfig")
    assert config["clusters"][0]["cluster"]["server"] == old.kept["server"]
    assert config["users"][0]["user"]["token"] == old.kept["administrator"]
    assert hashlib.sha256((old.path / "pki" / "ca.crt").read_bytes()).hexdigest() == old.kept["authority"]
    versions = await node.call("GET", "/api/v1/namespaces")
    assert int(versions["metadata"]["resourceVersion"]) >= old.newest


async def held(node: ClaimNode) -> dict[str, dict[str, list[str]]]:
    found = await node.held()
    return {name: {resource: sorted(ids) for resource, ids in each.items()} for name, each in found.items()}


async def test_everything_is_kept_over_repeated_starts_even_without_plugin_and_drivers(old: OldRoot) -> None:
    node = node_of(old)
    async with node:
        await assert_kept(node, old)
        await node.stop()
        await node.start()
        await assert_kept(node, old)
        await node.kill()
        await node.start()
        await assert_kept(node, old)
        assert json.loads((old.path / FILE).read_text())["format"] == FORMAT
        assert "Traceback" not in node.log
        assert "object set aside" not in node.log


def connection_of(text: str, directory: Path) -> Connection:
    path = directory / "client.kubeconfig"
    path.write_text(text)
    return kubeconfig.connection([path])


async def test_clients_go_on_with_their_credentials_and_watches(old: OldRoot) -> None:
    administrator = kubeconfig.connection([old.path / "kubeconfig"])
    ca = (old.path / "pki" / "ca.crt").read_bytes()
    account = kubeconfigs.text(
        kubeconfigs.document(old.kept["server"], ca, "builder", kubeconfigs.token_user(old.kept["token"]))
    )
    async with node_of(old), connected(administrator) as cluster:
        async with connected(connection_of(old.kept["nodeKubeconfig"], old.path)) as node:
            await node.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}})
            with pytest.raises(Forbidden):
                await node.delete(NODES, NODE)
        async with connected(connection_of(account, old.path)) as builder:
            (widget,) = (await builder.list(WIDGETS, "team")).items
            assert (widget["spec"], widget["status"]) == ({"size": 3}, {"ready": True})
            with pytest.raises(Forbidden):
                await builder.list(SECRETS, "team")
        seen = old.kept["watch"]
        with deadline():
            assert await changes(cluster, seen["from"], len(seen["versions"])) == [
                (version, str(number)) for number, version in enumerate(seen["versions"])
            ]
        with pytest.raises(Expired):
            await changes(cluster, "1", 1)


async def changes(cluster: Cluster, version: str, count: int) -> list[tuple[str, str]]:
    """Resume the watch of team's config maps: the versions that follow, with their data."""
    found: list[tuple[str, str]] = []
    async with cluster.watch(CONFIG_MAPS, "team", WatchOptions(resource_version=version)) as events:
        async for event in events:
            found.append((event.object["metadata"]["resourceVersion"], event.object["data"]["number"]))
            if len(found) == count:
                break
    return found


@asynccontextmanager
async def drivers_of(node: ClaimNode) -> AsyncIterator[tuple[FakeDraDriver, FakeDraDriver]]:
    """The plugin and both drivers, started again with the files and the credentials that they had."""
    async with AsyncExitStack() as stack:
        plugin = FakeDevicePlugin(node.plugins, RESOURCE, DEVICES, follow=True)
        await stack.enter_async_context(plugin)
        found = []
        for name, devices in ((GPU, 8), (NIC, 4)):
            own = kubeconfig.connection([node.root / "drivers" / f"{name}.kubeconfig"])
            cluster = await stack.enter_async_context(connected(own))
            uid = (await cluster.get(NODES, NODE))["metadata"]["uid"]
            await publish(cluster, name, NODE, devices, node_uid=uid)
            driver = FakeDraDriver(node.root, name, pool=NODE, keep=True, autostart=False)
            driver.handler = allocated(cluster, name)
            found.append(await stack.enter_async_context(driver))
        for driver in found:
            await driver.start()
        await node.until_healthy(RESOURCE, DEVICES)
        await node.until_connected(*found)
        yield found[0], found[1]


def taken(claims: Sequence[Document], driver: str) -> list[str]:
    """The devices of the driver that these claims have been allocated."""
    results = [
        each for claim in claims for each in claim.get("status", {}).get("allocation", {}).get("devices", {})["results"]
    ]
    return sorted(each["device"] for each in results if each["driver"] == driver)


async def test_running_pods_keep_their_devices_and_new_pods_get_others(old: OldRoot) -> None:
    node = node_of(old)
    async with node, drivers_of(node) as (gpu, nic):
        await node.until_gone("nic-ending")
        await node.until_forgotten("nic-ending", "nic-gone")
        assert not nic.prepared
        assert nic.asked(PREPARE) == []
        kept = {name: each for name, each in old.kept["prepared"].items() if each["drivers"][0]["driver"] == GPU}

        before = await node.pods()
        mine = old.kept["held"]
        free = DEVICES - sum(len(each[RESOURCE]) for each in mine.values())
        await node.create(pod("all-free", {RESOURCE: free}))
        await node.call("POST", CLAIMS, claim_of("new", GPU, 4))
        await node.call("POST", PODS, claim_pod("new", "new"))
        await node.until_phase("all-free", "Running")
        await node.until_phase("new", "Running")

        found = await held(node)
        assert {name: found[name] for name in mine} == mine
        ids = [id for each in found.values() for id in each[RESOURCE]]
        assert sorted(ids) == [f"dev-{number}" for number in range(DEVICES)]
        devices = taken([each for each in await node.items(CLAIMS) if "allocation" in each.get("status", {})], GPU)
        assert devices == sorted(set(devices))
        assert [[claim.name for claim in call.claims] for call in gpu.asked(PREPARE)] == [["new"]]
        assert len(gpu.prepared) == len(kept) + 1
        for name in old.kept["environment"]:
            after = (await node.pods())[name]
            assert after["status"]["containerStatuses"][0]["restartCount"] == 0
            assert after["metadata"]["uid"] == before[name]["metadata"]["uid"]


async def test_the_end_of_old_pods_unprepares_their_claims_and_releases_their_devices(old: OldRoot) -> None:
    node = node_of(old)
    async with node, drivers_of(node) as (gpu, _):
        pods = await node.pods()
        names = pods.keys() - {f"static-{NODE}"}
        for name in names:
            if "deletionTimestamp" not in pods[name]["metadata"]:
                await node.ask_to_delete(name)
        await node.call("PATCH", f"{PODS}/held", {"metadata": {"finalizers": None}}, MERGE)
        await node.until_gone(*names)
        await node.until_forgotten(*old.kept["prepared"])
        assert not gpu.prepared
        asked = {claim.name for call in gpu.asked(UNPREPARE) for claim in call.claims}
        mine = {name for name, each in old.kept["prepared"].items() if each["drivers"][0]["driver"] == GPU}
        assert asked == mine
        assert gpu.asked(PREPARE) == []
        await until(node.held, lambda found: found.keys() == {f"static-{NODE}"})
        await node.create(pod("all", {RESOURCE: DEVICES - 1}))
        await node.until_phase("all", "Running")


async def test_after_a_start_of_the_machine_pods_run_again_on_the_devices_that_they_had(
    archive: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    old = unpack(archive, root, same_boot=False)
    node = node_of(old)
    async with node, drivers_of(node) as (gpu, _):
        for name in old.kept["environment"]:
            await node.until_pod(name, restarted)
        assert await held(node) == old.kept["held"]
        assert {name: await node.environment(name) for name in old.kept["environment"]} == old.kept["environment"]
        claims = [each for each in await node.items(CLAIMS) if "allocation" in each.get("status", {})]
        answered = [each.device for claim in gpu.prepared.values() for each in claim.devices]
        assert sorted(answered) == taken(claims, GPU)


def restarted(pod: Document) -> bool:
    (container,) = pod["status"]["containerStatuses"]
    return bool(container["restartCount"] == 1 and "running" in container["state"])


def claim_of(name: str, driver: str, count: int) -> Document:
    requests = [{"name": "req", "exactly": {"deviceClassName": driver, "count": count}}]
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}}
    return {**head, "spec": {"devices": {"requests": requests}}}


@pytest.mark.parametrize(
    "command",
    [["up"], ["up", "--kubeconfig", "none"], ["store", "check"], ["store", "repair"], ["token", "driver", GPU]],
    ids=" ".join,
)
async def test_a_root_of_a_newer_format_is_refused_and_not_changed(old: OldRoot, command: Sequence[str]) -> None:
    (old.path / FILE).write_text('{"format":99,"devlet":"9.8.7"}\n')
    before = content(old.path)
    argv = [sys.executable, "-m", "devlet", *command, "--root", str(old.path)]
    answer = await anyio.to_thread.run_sync(warm_start.run, argv)
    assert answer.returncode == 1
    assert answer.stdout == ""
    error = answer.stderr
    assert error.startswith(f"error: root {old.path} was upgraded to format 99 by devlet 9.8.7; this is devlet ")
    assert "Use devlet 9.8.7 or newer, or put back the copy of the root" in error
    assert content(old.path) == before


def content(root: Path) -> dict[str, Any]:
    return {
        str(path): (path.lstat().st_mtime_ns, path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in root.rglob("*")
    }
