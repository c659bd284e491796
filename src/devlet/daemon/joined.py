"""The parts of a node that joins another cluster: the same node agent, using that cluster's API server.

No API is started. The socket in the root is still served, before anything else, because the node's views are needed
most when its cluster cannot be reached.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from devlet.cluster.remote.client import RemoteCluster
from devlet.cluster.remote.connection import Connection
from devlet.cluster.remote.http import Transport, open_transport
from devlet.cluster.remote.settings import Settings
from devlet.daemon import membership, root, root_upkeep
from devlet.daemon.api_server import connection_of, until_answered
from devlet.daemon.config import Config
from devlet.daemon.kube_api import SOCKET, raise_file_limit
from devlet.daemon.node import NodeAgent
from devlet.errors import InvalidInput, NotFound
from devlet.kit.clock import Clock, SystemClock
from devlet.kit.facts import facts
from devlet.kit.kept_files import KeptFile
from devlet.kit.metrics import Registry
from devlet.objects.kinds import NODES
from devlet.serve.kube_api import server
from devlet.serve.kube_api.endpoints import Endpoints
from devlet.serve.kube_api.forwarding import Forwarder
from devlet.serve.kube_api.joined_api import JoinedApi
from devlet.serve.kube_api.node_views import NodeViews
from devlet.serve.kube_api.paths import VIEWS

__all__ = ["joined"]

log = logging.getLogger(__name__)

# Requests through the socket have their own connections, so that they never delay heartbeats.
FORWARDED = Settings(qps=0)


@asynccontextmanager
async def joined(config: Config) -> AsyncIterator[None]:
    """Run the parts, which start in the order below."""
    connection, clock, metrics = _connection(config), SystemClock(), Registry()
    membership.join(config.root, connection.server)
    raise_file_limit()
    async with open_transport(connection, clock=clock) as own, open_transport(connection, FORWARDED, clock) as theirs:
        cluster = RemoteCluster(own)
        root.lay_out(config.root)
        node = NodeAgent(cluster, config, clock, metrics)
        async with (
            root_upkeep.kept(config.root, node.upkeep, KeptFile(config.root / membership.FILE)),
            _serving(config, node, theirs, clock, metrics),
        ):
            await until_answered(lambda: _ask(cluster, config.node_name), connection.address, clock)
            log.info("api server answers", extra=facts(server=connection.address, node=config.node_name))
            async with node.running():
                yield


def _connection(config: Config) -> Connection:
    if config.kubeconfig is None:
        raise InvalidInput("a kubeconfig is needed to join a cluster: give --kubeconfig")
    return connection_of(config.kubeconfig, config.context)


async def _ask(cluster: RemoteCluster, name: str) -> None:
    """Send a request that a node is always allowed to make."""
    with suppress(NotFound):
        await cluster.get(NODES, name)


@asynccontextmanager
async def _serving(
    config: Config, node: NodeAgent, theirs: Transport, clock: Clock, metrics: Registry
) -> AsyncIterator[None]:
    endpoints = Endpoints(VIEWS, "", metrics=metrics, checks=node.checks())
    api = JoinedApi(NodeViews(node.views), endpoints, Forwarder(theirs, config.node_name), clock)
    settings = server.Settings(idle_timeout=config.api_idle)
    async with server.listening_at(api.handle, config.root / SOCKET, settings=settings) as unix:
        log.info("socket listening", extra=facts(socket=unix.path))
        with node.upkeep.keeping(unix):
            yield
