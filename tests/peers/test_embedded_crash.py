"""devlet is killed while the real programs are connected to it, and started again on the same root: they carry on.

`kubectl get -w` is not among those that wait: it ends, with exit code 0, whenever its connection does, also in front
of kube-apiserver. `kubectl wait` watches on."""

import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.cluster.client import DeleteOptions, ListOptions, MergePatch
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import RemoteCluster, connected
from devlet.kit.processes import RunningProcess, line, process
from devlet.objects.documents import Document
from devlet.objects.kinds import (
    CONFIG_MAPS,
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from devlet.testing.embedded import EmbeddedApi, embedded_api
from devlet.testing.waiting import until
from tests.support.cluster_contract.specimens import claim_template, config_map, pod
from tests.support.peers.drivers import dra_example_driver
from tests.support.peers.heartbeats import node
from tests.support.peers.kube_programs import kube_controller_manager, kube_scheduler

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

OFF = "--controllers=-garbage-collector,-namespace"
# The rest of kube-controller-manager would find the silent node.
CONTROLLERS = ["resourceclaim-controller", "garbage-collector-controller", "namespace-controller"]
DRIVER = "gpu.example.com"
CLASS = {"metadata": {"name": DRIVER}, "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}}
CLAIMS = {
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    "containers": [{"name": "main", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}],
}
ROUNDS = 3
# Clients double their pauses up to half a minute while there is no server.
RECOVERY = 60.0


class Restarts:
    """devlet on one root, again and again."""

    def __init__(self, peers: "Peers", root: Path) -> None:
        self._start = partial(embedded_api, root, binaries=peers.binaries, arguments=[OFF])
        self._running = AsyncExitStack()
        self.api: EmbeddedApi

    async def start(self) -> None:
        self.api = await self._running.enter_async_context(self._start())

    async def kill(self) -> None:
        self.api.program.send_signal(signal.SIGKILL)
        assert await self.api.program.wait() == -signal.SIGKILL
        await self._running.aclose()

    async def stop(self) -> None:
        await self._running.aclose()


@asynccontextmanager
async def restarts(peers: "Peers", root: Path) -> AsyncIterator[Restarts]:
    devlet = Restarts(peers, root)
    await devlet.start()
    try:
        yield devlet
    finally:
        await devlet.stop()


async def slices(cluster: RemoteCluster) -> list[Document]:
    page = await cluster.list(RESOURCE_SLICES, options=ListOptions(field_selector=f"spec.driver={DRIVER}"))
    return list(page.items)


async def run_a_pod(cluster: RemoteCluster, name: str) -> str:
    """From its creation to its end. Returns the node it was bound to."""
    await cluster.create(PODS, pod(name, spec=CLAIMS), "default")
    bound = await until(
        partial(cluster.get, PODS, name, "default"), lambda pod: bool(pod["spec"].get("nodeName")), within=RECOVERY
    )
    await cluster.patch(PODS, name, MergePatch({"status": {"phase": "Succeeded"}}), "default", subresource="status")
    await cluster.delete(PODS, name, "default", DeleteOptions(grace_period=0))
    await until(lambda: cluster.list(RESOURCE_CLAIMS, "default"), lambda page: not page.items, within=RECOVERY)
    return str(bound["spec"]["nodeName"])


def kubectl_wait(peers: "Peers", api: EmbeddedApi, data: str) -> AbstractAsyncContextManager[RunningProcess]:
    """Entered when it watches."""
    what = ["wait", "configmap/flag", f"--for=jsonpath={{.data.k}}={data}", f"--timeout={RECOVERY:g}s"]
    command: list[str | Path] = [peers.binaries / "kubectl", f"--kubeconfig={api.kubeconfig}", "-v=6", *what]
    return process(command, log=api.root / f"wait-{data}.log", ready=line("watch=true.* status=.200 OK"))


@pytest.mark.spec("KA-10.82")
async def test_kubectl_a_driver_and_the_scheduler_recover_when_devlet_is_killed(peers: "Peers", root: Path) -> None:
    peers.need("kubectl", "kube-scheduler", "kube-controller-manager", "dra-example-kubeletplugin")
    async with restarts(peers, root) as devlet, AsyncExitStack() as stack:
        endpoint, path = devlet.api.endpoint, devlet.api.kubeconfig
        cluster = await stack.enter_async_context(connected(kubeconfig.connection([path])))
        await prepare(cluster)
        programs = [
            await stack.enter_async_context(program)
            for program in (
                kube_scheduler(peers.binaries, root / "peers", path),
                kube_controller_manager(peers.binaries, root / "peers", path, controllers=CONTROLLERS),
                dra_example_driver(peers.binaries, root / "n", path, node_name="n1", num_devices=1),
            )
        ]
        [published] = await until(partial(slices, cluster))
        assert await run_a_pod(cluster, "before") == "n1"
        for number in range(ROUNDS):
            async with kubectl_wait(peers, devlet.api, f"v{number}") as waiting:
                await devlet.kill()
                await devlet.start()
                assert devlet.api.endpoint == endpoint
                assert await run_a_pod(cluster, f"after-{number}") == "n1"
                await cluster.patch(CONFIG_MAPS, "flag", MergePatch({"data": {"k": f"v{number}"}}), "default")
                assert await waiting.wait() == 0
        assert await slices(cluster) == [published]
        await cluster.delete(RESOURCE_SLICES, published["metadata"]["name"])
        [again] = await until(partial(slices, cluster), within=RECOVERY)  # the driver takes half a minute
        assert again["spec"]["devices"] == published["spec"]["devices"]
        assert await run_a_pod(cluster, "last") == "n1"
        assert [program.returncode for program in programs] == [None] * 3


async def prepare(cluster: RemoteCluster) -> None:
    await cluster.create(NODES, node("n1", datetime.now(UTC)))
    await cluster.create(DEVICE_CLASSES, CLASS)
    await cluster.create(RESOURCE_CLAIM_TEMPLATES, claim_template("gpu"), "default")
    await cluster.create(CONFIG_MAPS, config_map("flag", data={"k": "v"}), "default")
