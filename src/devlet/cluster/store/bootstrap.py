"""Create what every cluster has from the start: a few namespaces and the system priority classes."""

from typing import Any

from devlet.cluster.client import Cluster
from devlet.errors import AlreadyExists
from devlet.objects.documents import Document
from devlet.objects.kinds import NAMESPACES, PRIORITY_CLASSES, Resource

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


async def bootstrap(cluster: Cluster) -> None:
    """Create what is missing. Idempotent."""
    for name in _NAMESPACES:
        await _ensure(cluster, NAMESPACES, name)
    for name, value in _PRIORITIES.items():
        await _ensure(cluster, PRIORITY_CLASSES, name, value=value, description="For the system's own pods.")


async def _ensure(cluster: Cluster, resource: Resource, name: str, **rest: Any) -> None:
    document: Document = {"metadata": {"name": name}, **rest}
    try:
        await cluster.create(resource, document)
    except AlreadyExists:
        pass
