"""The example of docs/contributing/peers.md."""

import json
from pathlib import Path

import pytest

from tests.support.peers.control_plane import ControlPlane
from tests.support.peers.drivers import dra_example_driver

pytestmark = [pytest.mark.peers, pytest.mark.anyio]


async def test_a_driver_names_itself_in_its_slices(cluster: ControlPlane, binaries: Path, root: Path) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    await cluster.kubectl("apply", "-f", "-", stdin=json.dumps(node))
    async with dra_example_driver(binaries, root, cluster.kubeconfig, node_name="n1"):
        await cluster.kubectl("wait", "--for=create", "resourceslices", "--all", "--timeout=60s")
        answer = await cluster.kubectl("get", "resourceslices", "-o", "jsonpath={.items[*].spec.driver}")
    assert answer.stdout == "gpu.example.com"
