"""Claims as drivers read them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from devlet.cluster.client import MergePatch
from devlet.cluster.store.store import Store, open_store
from devlet.errors import Conflict, NotFound, Unavailable
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.sdk.claim_reader import ClaimReader
from devlet.sdk.values import Claim, ClaimRef
from tests.support.workloads import claim

pytestmark = pytest.mark.anyio

DRIVER = "led.example.com"


def opaque(driver: str, value: str, *requests: str, source: str = "FromClaim") -> Document:
    config = {"source": source, "opaque": {"driver": driver, "parameters": {"color": value}}}
    return {**config, **({"requests": list(requests)} if requests else {})}


def result(device: str, driver: str = DRIVER, request: str = "gpu") -> Document:
    return {"request": request, "driver": driver, "pool": "n1", "device": device}


class Shelf:
    def __init__(self, store: Store) -> None:
        self.store = store

    async def add(self, name: str, allocation: Document | None = None) -> ClaimRef:
        made = await self.store.create(kinds.RESOURCE_CLAIMS, claim(name), "default")
        if allocation is not None:
            patch = MergePatch({"status": {"allocation": {"devices": allocation}}})
            await self.store.patch(kinds.RESOURCE_CLAIMS, name, patch, "default", subresource="status")
        return ClaimRef("default", name, made["metadata"]["uid"])


@pytest.fixture
async def shelf(root: Path, anyio_backend: str) -> AsyncIterator[Shelf]:
    async with open_store(root / "cluster.db") as store:
        yield Shelf(store)


@pytest.mark.spec("DN-5.5c")
async def test_a_driver_sees_its_own_results_and_configs(shelf: Shelf) -> None:
    config = [
        opaque(DRIVER, "dim", source="FromClass"),
        opaque("other.example.com", "x"),
        opaque(DRIVER, "bright", "gpu"),
    ]
    ref = await shelf.add(
        "c", {"results": [result("red"), result("x", driver="other.example.com", request="gpu")], "config": config}
    )
    found = (await ClaimReader(shelf.store, DRIVER).read([ref]))[ref.uid]
    assert isinstance(found, Claim) and found.uid == ref.uid
    assert [each.device for each in found.results] == ["red"]
    assert found.configs_for(found.results[0]) == [{"color": "dim"}, {"color": "bright"}]
    assert found.document["metadata"]["name"] == "c"


@pytest.mark.spec("DN-5.5d")
async def test_what_is_wrong_with_one_claim_is_its_own_answer(shelf: Shelf) -> None:
    good = await shelf.add("good", {"results": [result("red")]})
    bare = await shelf.add("bare")
    replaced = ClaimRef("default", "good", "somebody-else")
    missing = ClaimRef("default", "missing", "u-9")
    found = await ClaimReader(shelf.store, DRIVER).read([good, bare, replaced, missing])
    assert isinstance(found[good.uid], Claim)
    assert isinstance(found[bare.uid], Unavailable) and "is not allocated" in str(found[bare.uid])
    assert isinstance(found["somebody-else"], Conflict) and "got replaced" in str(found["somebody-else"])
    assert isinstance(found["u-9"], NotFound)


async def test_a_claim_for_another_node_is_refused_with_the_reason(shelf: Shelf) -> None:
    ref = await shelf.add("c")
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    allocation = {"devices": {"results": [result("red")]}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    patch = MergePatch({"status": {"allocation": allocation}})
    await shelf.store.patch(kinds.RESOURCE_CLAIMS, "c", patch, "default", subresource="status")
    assert isinstance((await ClaimReader(shelf.store, DRIVER, "n1").read([ref]))[ref.uid], Claim)
    refused = (await ClaimReader(shelf.store, DRIVER, "n2").read([ref]))[ref.uid]
    assert isinstance(refused, Unavailable)
    assert str(refused).endswith("cannot be used on node n2: its allocation requires metadata.name In [n1]")


class OldServer:
    """A server without resource.k8s.io/v1, and what it was asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.missing = ["v1"]
        self.asked: list[str] = []

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Document:
        self.asked.append(resource.api_version.rpartition("/")[2])
        if self.asked[-1] in self.missing:
            raise NotFound("the server could not find the requested resource")
        return await self._store.get(resource, name, namespace)


async def test_an_older_server_is_understood_and_remembered(shelf: Shelf) -> None:
    ref = await shelf.add("c", {"results": [result("red")]})
    old: Any = OldServer(shelf.store)
    reader = ClaimReader(old, DRIVER)
    for _ in range(2):
        found = (await reader.read([ref]))[ref.uid]
        assert isinstance(found, Claim) and found.document["apiVersion"] == "resource.k8s.io/v1"
    assert old.asked == ["v1", "v1beta2", "v1beta2"]


async def test_a_server_that_was_upgraded_meanwhile_is_understood(shelf: Shelf) -> None:
    ref = await shelf.add("c", {"results": [result("red")]})
    server: Any = OldServer(shelf.store)
    reader = ClaimReader(server, DRIVER)
    await reader.read([ref])
    server.missing = ["v1beta1", "v1beta2"]
    assert isinstance((await reader.read([ref]))[ref.uid], Claim)
