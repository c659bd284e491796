"""The embedded API keeps the contract of the port: the store behind it, HTTPS and `cluster.remote` in between."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devlet.cluster.client import Cluster
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.settings import Settings
from devlet.cluster.store.store import open_store
from devlet.daemon.config import Config
from devlet.daemon.kube_api import serving
from devlet.kit.clock import SystemClock
from devlet.objects.kinds import NAMESPACES
from tests.support import cluster_contract as contract
from tests.support.cluster_contract.specimens import named, unique


@pytest.fixture(scope="module")
async def cluster(module_root: Path, anyio_backend: str) -> AsyncIterator[Cluster]:
    clock = SystemClock()
    async with open_store(module_root / "cluster.db", clock=clock) as store:
        async with serving(store, Config(root=module_root, node_name="node1"), clock):
            connection = kubeconfig.connection([module_root / "kubeconfig"])
            async with connected(connection, Settings(qps=0)) as remote:
                yield remote


@pytest.fixture
async def namespace(cluster: Cluster) -> str:
    name = unique("ns")
    await cluster.create(NAMESPACES, named(name))
    return name


class Embedded:
    """How the embedded API differs from a kube-apiserver."""

    hides_bad_requests = False
    drops_unknown_keys = False


class TestConcurrency(Embedded, contract.ConcurrencyContract): ...


class TestConversions(Embedded, contract.ConversionContract): ...


class TestDeletion(Embedded, contract.DeletionContract): ...


class TestGarbage(Embedded, contract.GarbageContract): ...


class TestLists(Embedded, contract.ListContract): ...


class TestMetadata(Embedded, contract.MetadataContract): ...


class TestOptions(Embedded, contract.OptionContract): ...


class TestOwnership(Embedded, contract.OwnershipContract): ...


class TestPatches(Embedded, contract.PatchContract): ...


class TestPods(Embedded, contract.PodContract): ...


class TestSelectors(Embedded, contract.SelectorContract): ...


class TestStatus(Embedded, contract.StatusContract): ...


class TestVerbs(Embedded, contract.VerbContract): ...


class TestWatches(Embedded, contract.WatchContract): ...
