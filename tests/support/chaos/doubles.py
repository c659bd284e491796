"""Is a device ever given twice? Looks at every version that claims have, and again and again at what nodes hold.

    doubles = Doubles()
    tasks.start_soon(doubles.follow_claims, cluster)
    tasks.start_soon(doubles.follow_node, node)
    assert doubles.found == {}

Of claims nothing is missed: the watch goes on where it broke off. Files of nodes are looked at when there is time, and
are whole at any time.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import anyio
import grpc
import yaml

from devlet.cluster.client import Cluster, EventType, WatchOptions
from devlet.errors import DevletError, Expired, StateCorrupt
from devlet.kit.grpc_calls import answered
from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.state import device_checkpoint
from devlet.testing.node_process import NodeProcess
from devlet.wire.podresources_v1 import api_pb2 as pb

__all__ = ["Doubles", "in_checkpoint", "in_claims", "in_pod_resources", "in_specs", "pod_resources"]

INTERVAL = 0.1  # seconds between two looks at a node
AGAIN = 0.2  # seconds until an API that is away is asked again
ANSWER = 5.0

Holders = Iterable[tuple[str, str]]
"""A device, and who has it."""


class Doubles:
    """`found` has a text for each device that was given twice, with how often that was seen."""

    def __init__(self) -> None:
        self.found: dict[str, int] = {}
        self.versions = 0  # of claims that were looked at
        self.looks = 0  # at nodes

    def add(self, where: str, texts: Iterable[str]) -> None:
        for text in texts:
            self.found[f"{where}: {text}"] = self.found.get(f"{where}: {text}", 0) + 1

    async def follow_claims(self, cluster: Cluster) -> None:
        version, claims = "", dict[str, Document]()
        while True:
            try:
                if not version:
                    listed = await cluster.list(RESOURCE_CLAIMS)
                    version, claims = listed.resource_version, {_uid(each): each for each in listed.items}
                    self._look(claims)
                options = WatchOptions(resource_version=version, bookmarks=True)
                async with cluster.watch(RESOURCE_CLAIMS, options=options) as events:
                    async for event in events:
                        version = event.object["metadata"]["resourceVersion"]
                        if event.type is EventType.DELETED:
                            claims.pop(_uid(event.object), None)
                        elif event.type is not EventType.BOOKMARK:
                            claims[_uid(event.object)] = event.object
                            self._look(claims)
            except Expired:
                version = ""
            except DevletError:
                await anyio.sleep(AGAIN)

    def _look(self, claims: Mapping[str, Document]) -> None:
        self.versions += 1
        self.add("claims", in_claims(claims.values()))

    async def follow_node(self, node: NodeProcess, *, specs: bool = True) -> None:
        """`specs`: CDI specs of claims, too. A pod that was removed by force may be on the node for a while when others
        have its devices already; then they overlap, and nobody is to blame."""
        name = node.root.name
        while True:
            with suppress(FileNotFoundError):
                self.add(f"checkpoint of {name}", in_checkpoint(node.checkpoint_path))
            if specs:
                self.add(f"CDI specs of {name}", in_specs(node.root / "cdi"))
            with suppress(grpc.RpcError):
                self.add(f"PodResources of {name}", in_pod_resources(await pod_resources(node)))
            self.looks += 1
            await anyio.sleep(INTERVAL)


def in_claims(claims: Iterable[Document]) -> list[str]:
    """Devices that two claims have, each for itself."""
    return _twice(
        (f"{each['driver']}/{each['pool']}/{each['device']}", f"claim {claim['metadata']['name']} {_uid(claim)}")
        for claim in claims
        for each in _results(claim)
        if not each.get("adminAccess") and not each.get("shareID")
    )


def in_checkpoint(path: Path) -> list[str]:
    """Devices of plugins that two containers have. FileNotFoundError if there is no checkpoint yet."""
    try:
        entries = device_checkpoint.decode(path.read_bytes()).entries or ()
    except StateCorrupt as e:
        return [str(e)]
    return _twice(
        (f"{entry.resource} {id}", f"pod {entry.pod} container {entry.container}")
        for entry in entries
        for ids in (entry.devices or {}).values()
        for id in ids or ()
    )


def in_specs(folder: Path) -> list[str]:
    """Devices for which two claims have a CDI spec at the same time."""
    return _twice(_in_spec_files(folder))


def _in_spec_files(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("*")):
        with suppress(OSError, yaml.YAMLError):  # it has gone, or is being written
            for device in (yaml.safe_load(path.read_text()) or {}).get("devices") or ():
                name = device["name"]  # the claim's UID, 36 characters, and the device
                if len(name) > 37 and name[36] == "-":
                    yield f"{name[37:]}", f"claim {name[:36]}"


async def pod_resources(node: NodeProcess) -> pb.ListPodResourcesResponse:
    """What the node tells those who ask. grpc.RpcError if it does not answer."""
    async with grpc.aio.insecure_channel(f"unix:{node.root}/pod-resources/kubelet.sock") as channel:
        lister = channel.unary_unary(
            "/v1.PodResourcesLister/List",
            request_serializer=pb.ListPodResourcesRequest.SerializeToString,
            response_deserializer=pb.ListPodResourcesResponse.FromString,
        )
        answer: pb.ListPodResourcesResponse = await answered(lister(pb.ListPodResourcesRequest(), timeout=ANSWER))
        return answer


def in_pod_resources(answer: pb.ListPodResourcesResponse) -> list[str]:
    return _twice(
        (f"{devices.resource_name} {id}", f"pod {pod.name} container {container.name}")
        for pod in answer.pod_resources
        for container in pod.containers
        for devices in container.devices
        for id in devices.device_ids
    )


def _twice(held: Holders) -> list[str]:
    by_device: dict[str, list[str]] = {}
    for device, holder in held:
        by_device.setdefault(device, []).append(holder)
    return [
        f"{device} is held by {' and by '.join(holders)}"
        for device, holders in sorted(by_device.items())
        if len(set(holders)) > 1
    ]


def _results(claim: Document) -> list[Document]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    found: list[Document] = (allocation.get("devices") or {}).get("results") or []
    return found


def _uid(claim: Document) -> str:
    uid: str = claim["metadata"]["uid"]
    return uid
