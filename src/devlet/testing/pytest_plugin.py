"""Fixtures for projects with devlet installed: `devlet_node`, `devlet_nodes` and `devlet_node_async`.

    def test_a_pod_gets_its_device(devlet_node):
        with devlet_node.driver(["my-driver"], name="gpu.example.com"):
            ...

    @pytest.mark.devlet(control=False, timeouts={"draCall": 1})
    def test_without_a_scheduler(devlet_node): ...

pytest loads this module in every project, even if it is not used, so it must import nothing but pytest at the top.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

    from devlet.testing.node import Node
    from devlet.testing.sync_node import SyncNode

__all__ = ["devlet_node", "devlet_node_async", "devlet_nodes"]

MARKER = "devlet"
_ABOUT = f"{MARKER}(**options): options of Node.start for the fixtures devlet_node and devlet_node_async"

_NOT_ANYIO = (
    "devlet_node_async is for tests that are marked with pytest.mark.anyio and run on asyncio. Elsewhere use"
    " `async with Node.start() as node` in the test, or the fixture devlet_node: see docs/testing.md of devlet."
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _ABOUT)


@pytest.fixture(scope="session")
def _devlet_thread() -> "Iterator[BlockingPortal]":
    from devlet.testing.sync_node import node_thread

    with node_thread() as thread:
        yield thread


@pytest.fixture
def devlet_nodes(_devlet_thread: "BlockingPortal") -> "Iterator[Callable[..., SyncNode]]":
    """Return a function that starts nodes: `devlet_nodes(name="a")`. The options are those of `Node.start`. Each node
    has a cluster of its own, and is stopped after the test."""
    from devlet.testing.sync_node import SyncNode

    with ExitStack() as stack:

        def start(**options: Any) -> SyncNode:
            return stack.enter_context(SyncNode.start(_devlet_thread, **options))

        yield start


@pytest.fixture
def devlet_node(request: pytest.FixtureRequest, devlet_nodes: "Callable[..., SyncNode]") -> "SyncNode":
    """A whole node in this process, for one test."""
    return devlet_nodes(**_options(request))


@pytest.fixture
async def devlet_node_async(request: pytest.FixtureRequest) -> "AsyncIterator[Node]":
    """The same for an async test, in its event loop. It needs the pytest plugin of anyio with the asyncio backend."""
    from devlet.testing.node import Node

    if "anyio_backend" not in request.fixturenames or request.getfixturevalue("anyio_backend_name") != "asyncio":
        pytest.fail(_NOT_ANYIO, pytrace=False)
    async with Node.start(**_options(request)) as node:
        yield node


def _options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the options of all markers; the closest marker wins."""
    found: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers(MARKER))):
        found |= marker.kwargs
    return found
