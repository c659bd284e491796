from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devlet.cluster.client import MergePatch
from devlet.cluster.store.store import Store, open_store
from devlet.control.namespace_controller import NamespaceController, Settings, namespaced
from devlet.errors import Forbidden
from devlet.kit.backoff import Backoff
from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.objects.kinds import (
    BUILT_IN,
    CONFIG_MAPS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    SECRETS,
    SERVICE_ACCOUNTS,
    Catalogue,
)
from tests.support.cluster_contract.reading import eventually, eventually_gone, exists
from tests.support.cluster_contract.specimens import claim, config_map, lease, named, pod

pytestmark = pytest.mark.anyio
QUICK = Backoff(0.001, 0.01)
HOLD = "example.com/hold"


@pytest.fixture
async def store(root: Path, anyio_backend: str) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db") as store:
        yield store


def controller(store: Store, *, accounts: bool = True, finalize: bool = True) -> NamespaceController:
    return NamespaceController(store, store.catalogue, SystemClock(), Settings(accounts, finalize, QUICK))


async def account(store: Store, namespace: str) -> None:
    await eventually(store, SERVICE_ACCOUNTS, "default", namespace, lambda _: True)


async def test_each_namespace_has_a_default_service_account(store: Store) -> None:
    await store.create(NAMESPACES, named("before"))
    async with running(controller(store).run):
        await store.create(NAMESPACES, named("after"))
        for namespace in ("default", "kube-system", "before", "after"):
            await account(store, namespace)
            assert await exists(store, SERVICE_ACCOUNTS, "default", namespace)


async def test_a_deleted_namespace_is_emptied_and_released(store: Store) -> None:
    async with running(controller(store).run):
        await store.create(NAMESPACES, named("ns"))
        await account(store, "ns")
        await store.create(CONFIG_MAPS, config_map("a"), "ns")
        await store.create(PODS, pod("p"), "ns")
        await store.create(LEASES, lease("l"), "ns")
        await store.create(RESOURCE_CLAIMS, claim("c"), "ns")
        await store.create(CONFIG_MAPS, config_map("elsewhere"), "default")
        await store.delete(NAMESPACES, "ns")
        await eventually_gone(store, NAMESPACES, "ns")
        for resource in namespaced(store.catalogue):
            assert not (await store.list(resource, "ns")).items
        assert await exists(store, CONFIG_MAPS, "elsewhere", "default")


async def test_the_controller_waits_for_objects_that_take_longer(store: Store) -> None:
    async with running(controller(store).run):
        await store.create(NAMESPACES, named("ns"))
        await account(store, "ns")
        await store.create(SECRETS, named("held", finalizers=[HOLD]), "ns")
        await store.delete(NAMESPACES, "ns")
        await eventually(store, SECRETS, "held", "ns", lambda s: "deletionTimestamp" in s["metadata"])
        assert (await store.get(NAMESPACES, "ns"))["status"]["phase"] == "Terminating"
        with pytest.raises(Forbidden):
            await store.create(CONFIG_MAPS, config_map("late"), "ns")
        await store.patch(SECRETS, "held", MergePatch({"metadata": {"finalizers": None}}), "ns")
        await eventually_gone(store, NAMESPACES, "ns")


async def test_a_namespace_with_a_finalizer_of_its_own_stays_until_that_is_gone(store: Store) -> None:
    async with running(controller(store).run):
        await store.create(NAMESPACES, named("ns", finalizers=[HOLD]))
        await account(store, "ns")
        await store.delete(NAMESPACES, "ns")
        await eventually(store, NAMESPACES, "ns", "", lambda n: not n["spec"].get("finalizers"))
        await store.patch(NAMESPACES, "ns", MergePatch({"metadata": {"finalizers": None}}))
        await eventually_gone(store, NAMESPACES, "ns")


async def test_an_interrupted_deletion_is_finished_by_the_next_controller(store: Store) -> None:
    await store.create(NAMESPACES, named("ns"))
    await store.create(CONFIG_MAPS, config_map("a"), "ns")
    await store.delete(NAMESPACES, "ns")
    assert await exists(store, CONFIG_MAPS, "a", "ns")
    async with running(controller(store).run):
        await eventually_gone(store, NAMESPACES, "ns")
    assert not await exists(store, CONFIG_MAPS, "a", "ns")


async def test_service_accounts_and_finalization_can_be_disabled(store: Store) -> None:
    await store.create(NAMESPACES, named("ending"))
    await store.delete(NAMESPACES, "ending")
    async with running(controller(store, finalize=False).run):
        await account(store, "default")
        assert await exists(store, NAMESPACES, "ending")
    await store.create(NAMESPACES, named("bare"))
    async with running(controller(store, accounts=False).run):
        await eventually_gone(store, NAMESPACES, "ending")
        assert not await exists(store, SERVICE_ACCOUNTS, "default", "bare")


async def test_a_name_can_be_reused(store: Store) -> None:
    async with running(controller(store).run):
        for _ in range(3):
            await store.create(NAMESPACES, named("again"))
            await account(store, "again")
            await store.delete(NAMESPACES, "again")
            await eventually_gone(store, NAMESPACES, "again")
    assert not await exists(store, NAMESPACES, "again")


def test_each_namespaced_kind_is_listed_once_in_its_storage_version() -> None:
    found = list(namespaced(Catalogue(BUILT_IN)))
    assert PODS in found and NODES not in found
    assert len({resource.kind.key for resource in found}) == len(found)
