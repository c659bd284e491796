"""Garbage collection by the real kube-controller-manager, seen through `devlet.cluster.remote`."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from devlet.cluster.client import Cluster
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.settings import Settings
from devlet.objects.kinds import NAMESPACES, SERVICE_ACCOUNTS
from tests.support.cluster_contract import GarbageContract
from tests.support.cluster_contract.reading import eventually
from tests.support.cluster_contract.specimens import named, unique
from tests.support.peers.control_plane import control_plane

pytestmark = [pytest.mark.peers, pytest.mark.anyio]


@pytest.fixture(scope="module")
async def cluster(peers: Any) -> AsyncIterator[Cluster]:
    peers.need("etcd", "kubectl", "kube-apiserver", "kube-controller-manager")
    path = Path(tempfile.mkdtemp(prefix="dv"))
    async with control_plane(peers.binaries, path, controller_manager=True, fsync=False) as reference:
        async with connected(kubeconfig.connection([reference.kubeconfig]), Settings(qps=0)) as cluster:
            yield cluster
    shutil.rmtree(path)


@pytest.fixture
async def namespace(cluster: Cluster) -> str:
    """Ready for pods, which need its service account."""
    name = unique("ns")
    await cluster.create(NAMESPACES, named(name))
    await eventually(cluster, SERVICE_ACCOUNTS, "default", name, lambda account: True)
    return name


class TestGarbage(GarbageContract): ...
