"""Nodes, and DRA drivers on them that leave nothing behind."""

import os
import random
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from devlet.testing.fake_dra_driver import FakeDraDriver
from tests.support.claim_node import ClaimNode
from tests.support.node_drivers import NodeDrivers, node_drivers

TIMES = """
timeouts:
  draCall: 1s
  sliceWipeDelay: 500ms
  claimReconcile: 1s
  healthRetry: 100ms
"""
NO_RETRY = f"{TIMES}  prepareRetry: 10m\n"  # a pod that is not woken by a change would wait for minutes


@pytest.fixture(scope="module")
async def claim_node(request: pytest.FixtureRequest) -> AsyncIterator[ClaimNode]:
    """One for all tests of a module, with short time-outs, or with what the module calls CONFIGURATION."""
    root = Path(tempfile.mkdtemp(prefix="dv"))
    async with ClaimNode(root, getattr(request.module, "CONFIGURATION", TIMES)) as node:
        yield node
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def node(claim_node: ClaimNode) -> ClaimNode:
    """A module that wants another has a fixture of this name."""
    return claim_node


@pytest.fixture
async def drivers(request: pytest.FixtureRequest, node: ClaimNode) -> AsyncIterator[NodeDrivers]:
    """What the module calls KEEP stays on the node."""
    async with node_drivers(node, getattr(request.module, "KEEP", ())) as drivers:
        yield drivers


@pytest.fixture
async def gpu(drivers: NodeDrivers) -> FakeDraDriver:
    """A driver that can be called."""
    return await drivers.start("gpu")


@pytest.fixture
async def nic(drivers: NodeDrivers) -> FakeDraDriver:
    """Another driver."""
    return await drivers.start("nic")


@pytest.fixture
def crash_seed(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> int:
    """DEVLET_CRASH_SEED or a random number, shown if the test fails and recorded with the module's ROUNDS."""
    seed = int(os.environ.get("DEVLET_CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
    print(f"DEVLET_CRASH_SEED={seed}")  # noqa: T201
    record_property("seed", seed)
    record_property("rounds", request.module.ROUNDS)
    return seed
