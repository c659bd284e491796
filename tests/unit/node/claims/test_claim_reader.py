from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from devlet.cluster.client import MergePatch
from devlet.cluster.store.store import Store, open_store
from devlet.errors import DevletError, NotFound, Unavailable
from devlet.node.claims.claim_reader import ClaimReader
from devlet.node.claims.records import ClaimKey
from devlet.objects.documents import Document
from devlet.objects.identifiers import ClaimName
from devlet.objects.kinds import RESOURCE_CLAIMS, Resource
from tests.support.cluster_contract.specimens import claim

pytestmark = pytest.mark.anyio

KEY = ClaimKey("default", ClaimName("gpu"))


@pytest.fixture
async def store(root: Path, anyio_backend: str) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db") as store:
        yield store


class OldServer:
    """The store, without some API versions."""

    def __init__(self, store: Store, *unserved: str) -> None:
        self._store = store
        self._unserved = unserved
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Document:
        self.asked.append(resource.version)
        if resource.version in self._unserved:
            raise NotFound("404 page not found")
        return await self._store.get(resource, name, namespace)


class Fixed:
    """A cluster that always gives the same answer."""

    def __init__(self, answer: Document | DevletError) -> None:
        self._answer = answer

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Document:
        if isinstance(self._answer, DevletError):
            raise self._answer
        return self._answer


async def test_each_read_returns_the_newest_claim(store: Store) -> None:
    await store.create(RESOURCE_CLAIMS, claim("gpu"), "default")
    reader = ClaimReader(store)
    assert (await reader.read_claim(KEY)).metadata.labels == {}
    await store.patch(RESOURCE_CLAIMS, "gpu", MergePatch({"metadata": {"labels": {"a": "b"}}}), "default")
    assert (await reader.read_claim(KEY)).metadata.labels == {"a": "b"}


@pytest.mark.spec("DN-11.27")
async def test_a_claim_of_an_older_api_version_is_converted(store: Store) -> None:
    await store.create(RESOURCE_CLAIMS, claim("gpu"), "default")
    for unserved in (("v1",), ("v1", "v1beta2")):
        server = OldServer(store, *unserved)
        reader = ClaimReader(server)
        found = [await reader.read_claim(KEY) for _ in range(2)]
        assert found == [await ClaimReader(store).read_claim(KEY)] * 2
        assert found[0].spec.devices.requests[0].exactly is not None
        last = server.asked[-1]
        assert server.asked == [*unserved, last, last]


async def test_a_missing_claim_is_named_in_the_error(store: Store) -> None:
    server = OldServer(store)
    with pytest.raises(NotFound, match=r"^ResourceClaim default/gpu: it does not exist$") as caught:
        await ClaimReader(server).read_claim(KEY)
    assert caught.value.name == "gpu"
    assert server.asked == ["v1"]


async def test_a_cluster_that_does_not_serve_claims_is_named_in_the_error(store: Store) -> None:
    server = OldServer(store, "v1", "v1beta2", "v1beta1")
    with pytest.raises(
        NotFound, match="ResourceClaim default/gpu: the cluster serves resourceclaims in none"
    ) as caught:
        await ClaimReader(server).read_claim(KEY)
    assert caught.value.name == ""


async def test_an_unavailable_cluster_does_not_mean_that_the_claim_is_missing() -> None:
    with pytest.raises(Unavailable):
        await ClaimReader(Fixed(Unavailable("down"))).read_claim(KEY)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (
            {"name": "gpu", "namespace": "default", "uid": 7},
            "ResourceClaim default/gpu: the cluster's answer is malformed",
        ),
        ({"name": "nic", "namespace": "default", "uid": "u"}, "answered with another object"),
        ({"name": "gpu", "namespace": "other", "uid": "u"}, "answered with another object"),
        ({"name": "gpu", "namespace": "default"}, "answered with another object"),
    ],
)
async def test_an_answer_with_another_object_is_an_error(metadata: Document, message: str) -> None:
    answer = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata}
    with pytest.raises(DevletError, match=message):
        await ClaimReader(Fixed(answer)).read_claim(KEY)
