"""Where manifests are tried: an API, whoever schedules and controls, a devlet node, and unmodified drivers beside it.

All drivers are dra-example-kubeletplugin, and run at the same time under different names. Of its features it can have
one set per process: parts of devices, shares of devices, and devices that are not ready at once.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import anyio
import yaml

from devlet.cluster.client import Cluster
from devlet.cluster.remote import kubeconfig as kubeconfigs
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.settings import Settings
from devlet.errors import DevletError
from devlet.objects.documents import Document
from devlet.objects.kinds import (
    DEVICE_TAINT_RULES,
    EVENTS,
    NAMESPACES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from devlet.testing.node_process import NODE, VIEWS
from devlet.testing.waiting import until
from tests.support.manifests.seen import Seen, seen
from tests.support.peers.drivers import dra_example_driver, generic_device_plugin
from tests.support.peers.peer_node import PeerNode

__all__ = ["DRIVERS", "Api", "Control", "Environment", "drivers", "environment_on"]

Control = Literal["reference", "devlet"]
Api = Literal["embedded", "kubernetes"]

DRIVERS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "gpu.example.com": {"num_devices": 4},
        "parts.example.com": {"num_devices": 1, "flags": ["--gpu-partitions=4"]},
        "shares.example.com": {"num_devices": 1, "flags": ["--gpu-allow-multiple-allocations"]},
        "late.example.com": {"num_devices": 1, "flags": ["--binding-conditions"]},
        "net.example.com": {"num_devices": 1, "profile": "net"},
    }
)
PLUGIN = {
    "name": "null",
    "groups": [
        {
            "count": 2,
            "paths": [
                {"path": "/dev/null", "permissions": "rw"},
                {"path": "/usr", "mountPath": "/host", "type": "Mount", "readOnly": True},
            ],
        }
    ],
}
PLUGIN_RESOURCE = "squat.ai/null"

AGAIN = 0.2  # seconds until kubectl tries again
PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Environment:
    """`scheduler_name` is what pods have to ask for; without it they ask for none. `rescue` starts a scheduler again
    that is not ours and may have lost a pod."""

    control: Control
    api: Api
    node: PeerNode
    cluster: Cluster
    kubeconfig: Path
    binaries: Path
    scheduler_name: str = ""
    namespaces: frozenset[str] = frozenset({"default"})  # those that stay
    drivers: frozenset[str] = frozenset(DRIVERS)
    rescue: Callable[[], Awaitable[None]] | None = None

    async def kubectl(self, *arguments: str, documents: Sequence[Document] = ()) -> None:
        """Until it works. AssertionError, with what it said, if that takes too long."""
        said = ""
        with anyio.move_on_after(PATIENCE):
            while True:
                said = await self._kubectl(arguments, yaml.safe_dump_all(documents))
                if not said:
                    return
                await anyio.sleep(AGAIN)
        raise AssertionError(f"kubectl {' '.join(arguments)}: {said}")

    async def _kubectl(self, arguments: Sequence[str], stdin: str) -> str:
        """What it complained about."""
        command = [str(self.binaries / "kubectl"), "--kubeconfig", str(self.kubeconfig), *arguments]
        home = self.node.root / "kubectl"
        environment = {"HOME": str(home), "KUBECACHEDIR": str(home / "cache")}
        answer = await anyio.run_process(command, input=stdin.encode(), env=environment, check=False)
        return answer.stderr.decode() or "failed" if answer.returncode else ""

    # What is there

    async def everything(self, resource: Resource) -> list[Document]:
        """In all namespaces."""
        return [dict(each) for each in (await self.cluster.list(resource)).items]

    async def seen(self) -> Seen:
        return seen(
            await self.everything(PODS),
            await self.everything(RESOURCE_CLAIMS),
            await self.node.items(f"{VIEWS}/holders"),
            await self.everything(EVENTS),
            await self.everything(DEVICE_TAINT_RULES),
        )

    async def published(self) -> dict[str, list[str]]:
        """The devices of each driver."""
        found: dict[str, list[str]] = {}
        for each in await self.everything(RESOURCE_SLICES):
            devices = found.setdefault(each["spec"]["driver"], [])
            devices.extend(device["name"] for device in each["spec"].get("devices") or ())
        return {name: sorted(devices) for name, devices in found.items()}

    async def left(self) -> list[str]:
        """Everything that manifests leave behind unless it is cleaned up."""
        objects = [
            f"{resource.name} {each['metadata']['name']}"
            for resource in (PODS, RESOURCE_CLAIMS, DEVICE_TAINT_RULES)
            for each in await self.everything(resource)
        ]
        namespaces = {each["metadata"]["name"] for each in await self.everything(NAMESPACES)} - self.namespaces
        prepared = await self.node.items(f"{VIEWS}/preparedclaims")
        held = await self.node.held()
        return [
            *objects,
            *(f"namespace {name}" for name in namespaces if not name.startswith("kube-")),
            *(f"prepared claim {each['metadata']['name']}" for each in prepared),
            *(f"claim {name} in the checkpoint" for name in self.node.claim_checkpoint()),
            *(f"CDI spec {name}" for name in self.node.specs()),
            *(
                f"{uid} in the checkpoint of {name}"
                for name in self.drivers
                for uid in driver_claims(self.node.root, name)
            ),
            *(f"devices of {pod}: {devices}" for pod, devices in held.items()),
        ]

    async def until_clean(self) -> None:
        """And nothing of it is told any more either."""

        async def left() -> list[str]:
            try:
                return await self.left()
            except DevletError as e:
                return [str(e)]

        await until(left, lambda found: not found, within=PATIENCE)
        for namespace in {each["metadata"]["namespace"] for each in await self.everything(EVENTS)}:
            await self.cluster.delete_collection(EVENTS, namespace)
        assert "Traceback" not in self.node.log

    async def until_ready(self) -> None:
        """All drivers have been found, and have said what they have."""
        await self.node.until_up(*self.drivers)
        await self.node.until_healthy(PLUGIN_RESOURCE, 2)
        await until(self.published, lambda found: found.keys() == self.drivers and all(found.values()))


def driver_claims(root: Path, driver: str) -> list[str]:
    """The UIDs of what the driver has written down as prepared."""
    file = root / "plugins" / driver / "checkpoint.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    return [each["uid"] for each in found.get("preparedClaims") or ()]


@asynccontextmanager
async def drivers(node: PeerNode, binaries: Path, kubeconfig: Path) -> AsyncIterator[None]:
    """All of `DRIVERS`, and a device plugin with a device node and a mount, on the node."""
    async with AsyncExitStack() as stack:
        for name, options in DRIVERS.items():
            driver = dra_example_driver(binaries, node.root, kubeconfig, node_name=NODE, driver_name=name, **options)
            await stack.enter_async_context(driver)
        await stack.enter_async_context(generic_device_plugin(binaries, node.root, [PLUGIN]))
        yield


@asynccontextmanager
async def environment_on(
    node: PeerNode, binaries: Path, kubeconfig: Path, classes: Path, *, control: Control, api: Api, scheduler: str = ""
) -> AsyncIterator[Environment]:
    """With a node that runs already, on an API for which `kubeconfig` has all rights, and somebody who schedules."""
    async with (
        drivers(node, binaries, kubeconfig),
        connected(kubeconfigs.connection([kubeconfig]), Settings(qps=0)) as cluster,
    ):
        namespaces = frozenset(each["metadata"]["name"] for each in (await cluster.list(NAMESPACES)).items)
        world = Environment(control, api, node, cluster, kubeconfig, binaries, scheduler, namespaces)
        await world.kubectl("apply", "-f", str(classes))
        await world.until_ready()
        yield world
