"""The cluster of a DRA driver under test: its own API server, with one node and without agents and controllers.

So only the driver and the checks change slices and claims. With a kubeconfig, it is another cluster, in which the
driver already runs.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from devlet.cluster.client import Cluster
from devlet.cluster.remote.client import connected
from devlet.cluster.store.store import Store, open_store
from devlet.daemon import kube_api
from devlet.daemon.api_server import connection_of
from devlet.daemon.config import Config
from devlet.errors import Forbidden, InvalidInput
from devlet.kit.clock import SystemClock
from devlet.objects.documents import Document
from devlet.objects.kinds import NODES, RESOURCE_SLICES, Resource

__all__ = ["ApiServer", "embedded", "joined"]


@dataclass(slots=True)
class ApiServer:
    """The API server. `refusals` are the errors of rejected writes of slices; None if they cannot be known."""

    cluster: Cluster
    kubeconfig: Path
    node: Document
    refusals: list[str] | None = field(default_factory=list)

    @property
    def is_ours(self) -> bool:
        """Whether it is the suite's own, without other nodes and drivers."""
        return self.refusals is not None

    @property
    def node_uid(self) -> str:
        uid: str = self.node["metadata"]["uid"]
        return uid


@asynccontextmanager
async def embedded(root: Path, node_name: str) -> AsyncIterator[ApiServer]:
    """Run an API server in `root`, which must exist."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(root / "cluster.db", clock=clock))
        refusals: list[str] = []
        recorded = cast(Store, _Recorded(store, refusals))
        await stack.enter_async_context(kube_api.serving(recorded, Config(root, node_name), clock))
        node = await store.create(NODES, {"metadata": {"name": node_name}})
        yield ApiServer(store, root / "kubeconfig", node, refusals)


@asynccontextmanager
async def joined(kubeconfig: Path, node_name: str) -> AsyncIterator[ApiServer]:
    """Connect to another cluster. Raises NotFound if it does not have the node."""
    async with connected(connection_of(kubeconfig)) as cluster:
        node = await cluster.get(NODES, node_name)
        yield ApiServer(cluster, kubeconfig, node, None)


class _Recorded:
    """The store as the API serves it, which records rejected writes of slices."""

    def __init__(self, store: Store, refusals: list[str]) -> None:
        self._store = store
        self._refusals = refusals

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def create(self, resource: Resource, *args: Any, **kwargs: Any) -> Document:
        return await self._write(self._store.create, resource, *args, **kwargs)

    async def update(self, resource: Resource, *args: Any, **kwargs: Any) -> Document:
        return await self._write(self._store.update, resource, *args, **kwargs)

    async def patch(self, resource: Resource, *args: Any, **kwargs: Any) -> Document:
        return await self._write(self._store.patch, resource, *args, **kwargs)

    async def _write(
        self, write: Callable[..., Awaitable[Document]], resource: Resource, *args: Any, **kwargs: Any
    ) -> Document:
        try:
            return await write(resource, *args, **kwargs)
        except (InvalidInput, Forbidden) as e:
            if resource.kind is RESOURCE_SLICES.kind:
                self._refusals.append(str(e))
            raise
