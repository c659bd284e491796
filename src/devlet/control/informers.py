"""The copies of the cluster's objects that the control loops share. Each kind is watched and decoded once.

The names of the indexes are defined here. `running` is ready when all copies are complete.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final, TypeVar

from devlet.cluster.client import Cluster
from devlet.cluster.informer import Indexer, Informer
from devlet.cluster.quarantine import Quarantine
from devlet.kit.parts import running
from devlet.objects import kinds
from devlet.objects.documents import Document, view
from devlet.objects.kinds import Resource
from devlet.objects.pods.claims import claim_names
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.core import Namespace
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod
from devlet.objects.types.slice import ResourceSlice
from devlet.objects.types.taint_rule import DeviceTaintRule

__all__ = ["BY_CLAIM", "BY_CONSUMER", "BY_NODE", "BY_OWNER", "BY_TEMPLATE", "Informers"]

BY_CLAIM: Final = "claim"  # pods, by namespace/name of each claim that they use
BY_TEMPLATE: Final = "template"  # pods, by namespace/name of each template that they use
BY_NODE: Final = "node"  # pods, by the name of their node
BY_OWNER: Final = "owner"  # claims, by the UID of their controller
BY_CONSUMER: Final = "consumer"  # claims, by the UID of each consumer they are reserved for

T = TypeVar("T")


class Informers:
    """Templates stay documents, because their content is copied. With `rules` False, the API has no taint rules."""

    def __init__(self, cluster: Cluster, *, rules: bool = True, quarantine: Quarantine | None = None) -> None:
        shared = quarantine or Quarantine()
        informer = partial(_make, cluster, shared)
        self.pods = informer(
            kinds.PODS,
            Pod,
            {BY_CLAIM: _claims_of, BY_TEMPLATE: _templates_of, BY_NODE: lambda pod: (pod.spec.node_name,)},
        )
        self.claims = informer(kinds.RESOURCE_CLAIMS, ResourceClaim, {BY_OWNER: _owners_of, BY_CONSUMER: _consumers_of})
        self.templates: Informer[Document] = Informer(
            cluster, kinds.RESOURCE_CLAIM_TEMPLATES, lambda found: found, quarantine=shared
        )
        self.nodes = informer(kinds.NODES, Node)
        self.namespaces = informer(kinds.NAMESPACES, Namespace)
        self.slices = informer(kinds.RESOURCE_SLICES, ResourceSlice)
        self.classes = informer(kinds.DEVICE_CLASSES, DeviceClass)
        self.rules = informer(kinds.DEVICE_TAINT_RULES, DeviceTaintRule)
        self._all: list[Informer[Any]] = [self.nodes, self.slices, self.classes, self.namespaces, self.templates]
        self._all += [self.claims, self.pods, *([self.rules] if rules else [])]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for each in self._all:
                await stack.enter_async_context(running(each.run))
            yield

    async def following(self, within: float) -> None:
        """Wait until all copies are up to date, for at most so many seconds since each one was. After an outage, some
        kinds are watched again before others."""
        for each in self._all:
            if not each.is_following:
                await each.until_following(within)


def _make(
    cluster: Cluster,
    quarantine: Quarantine,
    resource: Resource,
    type_: type[T],
    indexes: Mapping[str, Indexer[T]] | None = None,
) -> Informer[T]:
    return Informer(cluster, resource, partial(view, type_), indexes=indexes, quarantine=quarantine)


def _claims_of(pod: Pod) -> Iterable[str]:
    return (f"{pod.metadata.namespace}/{name}" for name in claim_names(pod))


def _templates_of(pod: Pod) -> Iterable[str]:
    names = (entry.resource_claim_template_name for entry in pod.spec.resource_claims)
    return (f"{pod.metadata.namespace}/{name}" for name in names if name)


def _owners_of(claim: ResourceClaim) -> Iterable[str]:
    owner = claim.metadata.controller
    return (owner.uid,) if owner else ()


def _consumers_of(claim: ResourceClaim) -> Iterable[str]:
    return (consumer.uid for consumer in claim.status.reserved_for)
