from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from devlet.cluster.store.store import Store, open_store
from devlet.objects.identifiers import ClaimName, ClaimUID
from devlet.objects.kinds import RESOURCE_CLAIMS, RESOURCE_SLICES
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins.dra import ClaimProblem, ClaimRef
from devlet.testing.fake_dra_cluster import allocated, publish

pytestmark = pytest.mark.anyio

DRIVER = "gpu.example.com"
REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 2}}


@pytest.fixture
async def store(root: Path) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db") as store:
        yield store


async def claim(store: Store, name: str, *results: dict[str, Any]) -> ClaimRef:
    """In the store, with that allocation."""
    made = await store.create(
        RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": {"devices": {"requests": [REQUEST]}}}, "default"
    )
    if results:
        made["status"] = {"allocation": {"devices": {"results": list(results)}}}
        await store.update(RESOURCE_CLAIMS, made, subresource="status")
    return ClaimRef("default", ClaimName(name), ClaimUID(made["metadata"]["uid"]))


async def test_devices_are_published_in_one_slice_of_the_node(store: Store) -> None:
    made = await publish(store, DRIVER, "n1", 2, node_uid="node-uid")
    assert made["spec"]["driver"] == DRIVER and made["spec"]["nodeName"] == "n1"
    assert made["spec"]["pool"] == {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    assert [device["name"] for device in made["spec"]["devices"]] == ["dev-0", "dev-1"]
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("Node", "n1", "node-uid", True)


async def test_publishing_again_replaces_the_slice_with_the_next_generation(store: Store) -> None:
    await publish(store, DRIVER, "n1", 2, pool="p")
    await publish(store, DRIVER, "n1", [{"name": "other"}], pool="p")
    (slice,) = (await store.list(RESOURCE_SLICES)).items
    assert slice["spec"]["pool"] == {"name": "p", "generation": 2, "resourceSliceCount": 1}
    assert [device["name"] for device in slice["spec"]["devices"]] == ["other"]
    assert "ownerReferences" not in slice["metadata"]


async def test_a_claim_is_answered_with_what_it_was_allocated_of_the_driver(store: Store) -> None:
    share = "11111111-2222-4333-8444-555555555555"
    asked = await claim(
        store,
        "train",
        {"driver": DRIVER, "pool": "p", "device": "dev-1", "request": "gpu"},
        {"driver": "other.example.com", "pool": "p", "device": "dev-2", "request": "gpu"},
        {"driver": DRIVER, "pool": "p", "device": "dev-3", "request": "gpu", "shareID": share},
    )
    assert await allocated(store, DRIVER)(asked) == [
        PreparedDevice("p", "dev-1", requests=("gpu",)),
        PreparedDevice("p", "dev-3", requests=("gpu",), share=share),
    ]


async def test_a_claim_that_is_absent_another_or_unallocated_is_a_problem(store: Store) -> None:
    answer = allocated(store, DRIVER)
    asked = await claim(store, "train")
    problems = [
        await answer(asked),
        await answer(ClaimRef("default", asked.name, ClaimUID("old"))),
        await answer(ClaimRef("default", ClaimName("gone"), ClaimUID("u"))),
    ]
    texts = [problem.message for problem in problems if isinstance(problem, ClaimProblem)]
    assert ["not allocated" in texts[0], "not old" in texts[1], "not found" in texts[2]] == [True] * 3
