"""Assembles the Kubernetes API of this node: credentials, gate, handlers, and its two listeners."""

import logging
import resource
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import anyio

from devlet.auth import certificates, kubeconfigs
from devlet.auth.authentication import Authenticator
from devlet.auth.authorization import Authorizer
from devlet.auth.credentials import Credentials, open_credentials
from devlet.auth.stored_objects import StoredObjects
from devlet.auth.users import User
from devlet.cluster.store.store import Store
from devlet.daemon.config import Config
from devlet.errors import AlreadyExists, Unavailable
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.kit.heavy_work import HeavyWork
from devlet.kit.kept_files import KeptDirectory, KeptFile
from devlet.kit.metrics import Registry
from devlet.kit.upkeep import Kept, Upkeep
from devlet.objects.documents import Document
from devlet.objects.kinds import SERVICE_ACCOUNTS
from devlet.serve.kube_api import server
from devlet.serve.kube_api.api import KubeApi, attributes_of_target
from devlet.serve.kube_api.definitions import Definitions
from devlet.serve.kube_api.endpoints import Endpoints
from devlet.serve.kube_api.gate import Gate
from devlet.serve.kube_api.handlers import Handlers
from devlet.serve.kube_api.health import HEALTHY, Check
from devlet.serve.kube_api.node_views import NodeViews, Views
from devlet.serve.kube_api.openapi_custom import with_views
from devlet.serve.kube_api.paths import Target, WithViews
from devlet.serve.kube_api.reader_limits import ReaderLimits
from devlet.serve.kube_api.virtual import Virtual

log = logging.getLogger(__name__)

SOCKET = "devlet.sock"
_LASTING_PORTS = range(20_000, 32_768)  # below Linux's default net.ipv4.ip_local_port_range


@asynccontextmanager
async def serving(
    store: Store,
    config: Config,
    clock: Clock,
    *,
    views: Views | None = None,
    metrics: Registry | None = None,
    checks: Sequence[Check] = (),
    upkeep: Upkeep | None = None,
) -> AsyncIterator[None]:
    """Serve the API. It is ready once both listeners accept connections and the kubeconfig has their address.

    See `kube_api` for the optional parts. `upkeep` restores the socket and the credentials if they are removed."""
    raise_file_limit()
    host, port = config.api_address
    names = certificates.server_names([host])
    credentials = await anyio.to_thread.run_sync(open_credentials, config.root, names, clock.now())
    tcp = _bound(host, port or _kept_port(config.root, host))
    url = _url(host, tcp.getsockname()[1])
    address = urlsplit(url).netloc
    limits = ReaderLimits(config.limits)
    if metrics is not None:
        limits.show(metrics)
        text = "Bytes of changes in memory that some watch has yet to see"
        metrics.gauge("devlet_store_unread_change_bytes", text, read=lambda: {(): store.unread_bytes})
    api = kube_api(store, credentials, clock, address, limits, views=views, metrics=metrics, checks=checks)
    tls = certificates.server_context(credentials.pki)
    settings = server.Settings(idle_timeout=config.api_idle, handshake_timeout=config.api_idle)
    async with (
        server.listening(api.handle, tcp, tls=tls, settings=settings),
        server.listening_at(api.handle, config.root / SOCKET, settings=settings) as unix,
    ):
        try:
            await anyio.to_thread.run_sync(credentials.write_kubeconfig, url)
        except OSError as e:
            raise Unavailable(f"{config.root / 'kubeconfig'} cannot be written: {e.strerror}") from e
        await _write_in_cluster(store, credentials, config, url, clock)
        log.info("api listening", extra=facts(url=url, socket=config.root / SOCKET))
        files = await anyio.to_thread.run_sync(_kept_credentials, config.root)
        with (upkeep or Upkeep(config.root)).keeping(unix, *files):
            try:
                yield
            finally:
                store.end_watches()  # otherwise each of them would delay the stop


def _kept_credentials(root: Path) -> list[Kept]:
    """Return the files of credentials. Without them the next start would create new ones, and the API would reject
    every existing kubeconfig and token."""
    directories = [root / "pki", root / "in-cluster"]
    files = [root / "kubeconfig", *(path for each in directories for path in sorted(each.iterdir()) if path.is_file())]
    return [*map(KeptDirectory, directories), *map(KeptFile, files)]


def _bound(host: str, port: int) -> socket.socket:
    """Bind a socket. Without a port, choose one that is not used for outgoing connections, so that it is free again at
    the next start."""
    if port:
        return server.bind_tcp(host, port)
    for candidate in random.sample(_LASTING_PORTS, 16):
        try:
            return server.bind_tcp(host, candidate)
        except Unavailable:
            continue
    return server.bind_tcp(host, 0)


async def _write_in_cluster(store: Store, credentials: Credentials, config: Config, url: str, clock: Clock) -> None:
    """Write a pod's service account files, of namespace `default`, for programs that expect to run in a pod."""
    try:
        account = await store.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, "default")
    except AlreadyExists:
        account = await store.get(SERVICE_ACCOUNTS, "default", "default")
    write = partial(credentials.write_in_cluster, account, config.node_name, url, clock.now())
    await anyio.to_thread.run_sync(write)


def kube_api(
    store: Store,
    credentials: Credentials,
    clock: Clock,
    address: str,
    limits: ReaderLimits,
    *,
    views: Views | None = None,
    metrics: Registry | None = None,
    checks: Sequence[Check] = (),
) -> KubeApi:
    """Return the API. `views` are the views of the node, and `checks` its health checks."""
    known = StoredObjects(store)
    authenticator = Authenticator(credentials.static_tokens(), credentials.tokens, known.uid_of, clock.now)
    gate = Gate(authenticator, Authorizer(known, known.policy), known.uid_of)

    def admit(user: User, verb: str, target: Target, new: Document | None, old: Document | None) -> None:
        gate.admission.admit(user, attributes_of_target(target, verb), new, old)

    shown = NodeViews(views) if views is not None else None
    catalogue = store.catalogue if shown is None else WithViews(store.catalogue)
    schema = with_views(Definitions(store).schema)
    checks = [Check("store", store.problem, HEALTHY), *checks]
    heavy = HeavyWork()
    endpoints = Endpoints(catalogue, address, schema, metrics=metrics, checks=checks, heavy=heavy)
    virtual = Virtual(store, gate, credentials.tokens)
    return KubeApi(store, gate, Handlers(store, admit, limits), virtual, endpoints, clock, shown, heavy)


def _kept_port(root: Path, host: str) -> int:
    """Return the port of the last start, which clients use; 0 if there was none."""
    for cluster in kubeconfigs.read(root / "kubeconfig").get("clusters") or ():
        url = urlsplit(str((cluster.get("cluster") or {}).get("server", "")))
        if url.hostname == host and url.port:
            return url.port
    return 0


def _url(host: str, port: int) -> str:
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def raise_file_limit() -> None:
    """Raise the soft limit of open files, which is often 1024, because every connection is a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
