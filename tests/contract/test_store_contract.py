"""The embedded cluster keeps the contract of the port."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devlet.cluster.client import Cluster
from devlet.cluster.store.store import open_store
from devlet.objects.kinds import NAMESPACES
from tests.support.cluster_contract import (
    ConcurrencyContract,
    ConversionContract,
    DeletionContract,
    GarbageContract,
    ListContract,
    MetadataContract,
    OptionContract,
    OwnershipContract,
    PatchContract,
    PodContract,
    SelectorContract,
    StatusContract,
    VerbContract,
    WatchContract,
)
from tests.support.cluster_contract.specimens import named, unique


@pytest.fixture(scope="module")
async def cluster(module_root: Path, anyio_backend: str) -> AsyncIterator[Cluster]:
    async with open_store(module_root / "cluster.db") as store:
        yield store


@pytest.fixture
async def namespace(cluster: Cluster) -> str:
    name = unique("ns")
    await cluster.create(NAMESPACES, named(name))
    return name


class Store:
    """How the embedded cluster differs from a kube-apiserver."""

    hides_bad_requests = False
    drops_unknown_keys = False


class TestConcurrency(Store, ConcurrencyContract): ...


class TestConversions(Store, ConversionContract): ...


class TestDeletion(Store, DeletionContract): ...


class TestGarbage(Store, GarbageContract): ...


class TestLists(Store, ListContract): ...


class TestMetadata(Store, MetadataContract): ...


class TestOptions(Store, OptionContract): ...


class TestOwnership(Store, OwnershipContract): ...


class TestPatches(Store, PatchContract): ...


class TestPods(Store, PodContract): ...


class TestSelectors(Store, SelectorContract): ...


class TestStatus(Store, StatusContract): ...


class TestVerbs(Store, VerbContract): ...


class TestWatches(Store, WatchContract): ...
