"""The embedded API on real sockets, in the test's own process."""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from devlet.auth import kubeconfigs
from devlet.cluster.store.store import Store, open_store
from devlet.daemon.config import Config
from devlet.daemon.kube_api import SOCKET, serving
from devlet.kit.clock import SystemClock
from devlet.objects.custom_resources import DEFINITION
from devlet.objects.kinds import BUILT_IN


@dataclass
class Served:
    """A client with the administrator's credentials, and the store behind the server."""

    root: Path
    store: Store
    url: str
    session: aiohttp.ClientSession
    token: str
    tls: ssl.SSLContext

    async def request(self, method: str, path: str, *, token: str | None = None, **arguments: Any) -> tuple[int, Any]:
        headers = {**arguments.pop("headers", {})}
        if (credential := self.token if token is None else token) != "":
            headers.setdefault("Authorization", f"Bearer {credential}")
        async with self.session.request(
            method, self.url + path, headers=headers, ssl=self.tls, skip_auto_headers=["Content-Type"], **arguments
        ) as answer:
            text = await answer.text()
            self.headers = answer.headers
            is_json = answer.headers.get("Content-Type", "").startswith("application/json")
            return answer.status, (await answer.json(content_type=None) if is_json else text)


Serve = Callable[..., AbstractAsyncContextManager[Served]]


@asynccontextmanager
async def served_at(root: Path, **added: Any) -> AsyncIterator[Served]:
    """Serve the API. `added` are arguments of `serving`: views, metrics, checks."""
    clock = SystemClock()
    async with open_store(root / "cluster.db", clock=clock, kinds=(*BUILT_IN, DEFINITION)) as store:
        config = Config(root=root, node_name="node1")
        async with serving(store, config, clock, **added), aiohttp.ClientSession() as session:
            written = kubeconfigs.read(root / "kubeconfig")
            url = written["clusters"][0]["cluster"]["server"]
            tls = ssl.create_default_context(cafile=str(root / "pki" / "ca.crt"))
            yield Served(root, store, url, session, written["users"][0]["user"]["token"], tls)


@pytest.fixture
def serve(root: Path) -> Serve:
    """Return a function that serves the API with additions, as in `async with serve(views=…)`."""
    return partial(served_at, root)


@pytest.fixture
async def served(root: Path) -> AsyncIterator[Served]:
    async with served_at(root) as api:
        yield api


@pytest.fixture
async def socket_session(served: Served) -> AsyncIterator[aiohttp.ClientSession]:
    """Return a session on the node's own socket, without credentials."""
    connector = aiohttp.UnixConnector(str(served.root / SOCKET))
    async with aiohttp.ClientSession("http://devlet", connector=connector) as session:
        yield session
