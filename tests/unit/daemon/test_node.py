"""The node agent as the daemon puts it together, on the embedded store and with a real plugin socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from devlet.cluster.store.settings import Settings
from devlet.cluster.store.store import Store, open_store
from devlet.daemon.config import Config
from devlet.daemon.node import NodeAgent, pod_settings
from devlet.daemon.node_settings import NodeSettings
from devlet.errors import InvalidInput, NotFound
from devlet.kit.clock import SystemClock
from devlet.kit.metrics import Registry
from devlet.objects.documents import Document
from devlet.objects.kinds import EVENTS, LEASES, NODES, PODS
from devlet.state import device_checkpoint
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio

GPU = "vendor.com/gpu"
POD: Document = {
    "metadata": {"name": "train", "namespace": "default"},
    "spec": {
        "nodeName": "n1",
        "containers": [{"name": "main", "image": "none", "resources": {"limits": {GPU: "1"}, "requests": {GPU: "1"}}}],
    },
}


@pytest.fixture
async def store(root: Path, anyio_backend: object) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db", Settings(), SystemClock()) as opened:
        yield opened


@pytest.fixture
def config(root: Path) -> Config:
    return Config(root, "n1")


@asynccontextmanager
async def agent(store: Store, config: Config, metrics: Registry | None = None) -> AsyncIterator[NodeAgent]:
    made = NodeAgent(store, config, SystemClock(), metrics or Registry())
    async with made.running():
        yield made


async def capacity(store: Store) -> str | None:
    node = await store.get(NODES, "n1")
    found: str | None = node["status"]["capacity"].get(GPU)
    return found


async def phase(store: Store) -> str:
    pod = await store.get(PODS, "train", "default")
    return str(pod["status"]["phase"])


async def test_a_plugin_that_registers_gives_the_node_capacity_and_pods_devices(store: Store, config: Config) -> None:
    metrics = Registry()
    async with agent(store, config, metrics) as node:
        async with FakeDevicePlugin(config.root / "device-plugins", GPU, 2) as plugin:
            await plugin.register()
            await until(partial(capacity, store), lambda seen: seen == "2")
            await store.create(PODS, POD, "default")
            await until(partial(phase, store), lambda seen: seen == "Running")
            held = [view["status"]["holder"]["pod"] for view in node.views.devices() if "holder" in view["status"]]
            assert held == ["train"]
    assert 'kubelet_device_plugin_registration_total{resource_name="vendor.com/gpu"} 1' in metrics.text()
    assert 'kubelet_device_plugin_alloc_duration_seconds_count{resource_name="vendor.com/gpu"} 1' in metrics.text()


async def test_the_sockets_are_private_and_old_ones_are_gone_at_the_start(store: Store, config: Config) -> None:
    directory = config.root / "device-plugins"
    directory.mkdir()
    async with FakeDevicePlugin(directory, GPU) as old:
        async with agent(store, config) as node:
            assert not old.path.exists()
            for socket in (node.registration.path, node.pod_resources.path):
                assert socket.stat().st_mode & 0o777 == 0o600


async def test_a_damaged_checkpoint_is_an_event_of_the_node(store: Store, config: Config) -> None:
    checkpoint = config.root / "device-plugins" / device_checkpoint.FILE_NAME
    checkpoint.parent.mkdir()
    checkpoint.write_text("{")

    async def event() -> list[Document]:
        found = await store.list(EVENTS, "default")
        return [each for each in found.items if each["reason"] == "DeviceCheckpointDamaged"]

    async with agent(store, config):
        (seen,) = await until(event)
        node = await store.get(NODES, "n1")
        assert seen["involvedObject"]["uid"] == node["metadata"]["uid"]
        types = [condition["type"] for condition in node["status"]["conditions"]]
        assert "DeviceCheckpointDamaged" in types


def test_what_the_configuration_asks_for_and_cannot_be_is_said_at_once(store: Store, config: Config) -> None:
    wrong = replace(config, node=NodeSettings(topology_policy="best-effort", numa_nodes=9))
    with pytest.raises(InvalidInput, match="9 NUMA nodes"):
        NodeAgent(store, wrong, SystemClock(), Registry())


async def test_a_node_has_a_lease_which_it_owns(store: Store, config: Config) -> None:
    async def lease() -> Document:
        try:
            return await store.get(LEASES, "n1", "kube-node-lease")
        except NotFound:
            return {}

    async with agent(store, config):
        found = await until(lease)
        node = await store.get(NODES, "n1")
        assert [each["uid"] for each in found["metadata"]["ownerReferences"]] == [node["metadata"]["uid"]]
        assert found["spec"]["holderIdentity"] == "n1"


async def test_pods_in_the_directory_of_static_pods_run_at_the_address_of_the_node(
    store: Store, config: Config
) -> None:
    folder = config.root / "static"
    folder.mkdir()
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main, image: x}]}}"
    (folder / "web.yaml").write_text(pod)
    (folder / "bad.yaml").write_text("{}")

    async def status() -> Document:
        try:
            found: Document = (await store.get(PODS, "web-n1", "default"))["status"]
            return found
        except NotFound:
            return {}

    settings = replace(config, node=NodeSettings(static_pod_path=folder, node_ip="10.0.0.5"))
    async with agent(store, settings):
        running = await until(status, lambda found: found.get("phase") == "Running")
        node = await store.get(NODES, "n1")
        assert running["hostIP"] == node["status"]["addresses"][0]["address"] == "10.0.0.5"

        async def event() -> list[Document]:
            return [each for each in (await store.list(EVENTS)).items if each["reason"] == "InvalidStaticPod"]

        (seen,) = await until(event)
        assert seen["involvedObject"]["uid"] == node["metadata"]["uid"] and "bad.yaml" in seen["message"]


@pytest.mark.parametrize(("retry", "longest"), [(1.0, 60.0), (600.0, 600.0)])
async def test_claims_are_retried_after_the_configured_delay_which_doubles_up_to_a_minute(
    retry: float, longest: float
) -> None:
    settings = pod_settings(NodeSettings(prepare_retry=retry, claim_reconcile=7.0), "10.0.0.1")
    assert (settings.prepare.first, settings.prepare.limit) == (retry, longest)
    assert (settings.address, settings.reconcile) == ("10.0.0.1", 7.0)
