"""The contract of the cluster port against the real kube-apiserver, through `devlet.cluster.remote`.
What needs its controller manager is in test_remote_garbage.py."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from devlet.cluster.client import Cluster
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import RemoteCluster, connected
from devlet.cluster.remote.settings import Settings
from devlet.objects.kinds import BUILT_IN, NAMESPACES
from tests.support import cluster_contract as contract
from tests.support.cluster_contract.specimens import named, unique
from tests.support.peers.control_plane import ControlPlane, control_plane

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "remote.md").read_text()

pytestmark = [pytest.mark.peers, pytest.mark.anyio]


@pytest.fixture(scope="module")
async def reference(peers: Any) -> AsyncIterator[ControlPlane]:
    """etcd and kube-apiserver: without controllers nobody else touches what the tests make."""
    peers.need("etcd", "kubectl", "kube-apiserver")
    path = Path(tempfile.mkdtemp(prefix="dv"))
    async with control_plane(peers.binaries, path, fsync=False) as running:
        yield running
    shutil.rmtree(path)


@pytest.fixture(scope="module")
async def cluster(reference: ControlPlane) -> AsyncIterator[RemoteCluster]:
    connection = kubeconfig.connection([reference.kubeconfig])
    async with connected(connection, Settings(qps=0)) as cluster:
        yield cluster


@pytest.fixture
async def namespace(cluster: Cluster) -> str:
    name = unique("ns")
    await cluster.create(NAMESPACES, named(name))
    return name


class TestConcurrency(contract.ConcurrencyContract): ...


class TestConversions(contract.ConversionContract): ...


class TestDeletion(contract.DeletionContract): ...


class TestLists(contract.ListContract): ...


class TestMetadata(contract.MetadataContract): ...


class TestOptions(contract.OptionContract): ...


class TestOwnership(contract.OwnershipContract): ...


class TestPatches(contract.PatchContract): ...


class TestPods(contract.PodContract): ...


class TestSelectors(contract.SelectorContract): ...


class TestStatus(contract.StatusContract): ...


class TestVerbs(contract.VerbContract): ...


class TestWatches(contract.WatchContract): ...


async def test_the_server_serves_every_kind_that_the_store_has(cluster: RemoteCluster) -> None:
    served = await cluster.discovery.api_versions()
    for kind in BUILT_IN:
        resource = await cluster.discovery.resource_of(kind)
        assert resource.api_version in served
        assert {f"{kind.plural}/{name}" for name in kind.subresources} <= await cluster.discovery.resources(
            resource.api_version
        )


async def test_the_server_says_its_version(cluster: RemoteCluster) -> None:
    assert (await cluster.discovery.server_version()).startswith("v1.")


async def test_the_example_of_the_page_prints_what_the_page_says(reference: ControlPlane) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (expected,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    environment = {**os.environ, "KUBECONFIG": str(reference.kubeconfig)}
    done = await anyio.run_process([sys.executable, "-c", code], env=environment, check=False)
    assert (done.returncode, done.stdout.decode()) == (0, expected), done.stderr.decode()
