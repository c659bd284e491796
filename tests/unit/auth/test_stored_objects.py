from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devlet.auth.rbac import GROUP
from devlet.auth.rules import Attributes
from devlet.auth.stored_objects import StoredObjects
from devlet.auth.users import User
from devlet.cluster.store.store import Store, open_store
from devlet.objects.kinds import NODES, PODS, RBAC, RESOURCE_SLICES

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(root: Path) -> AsyncIterator[Store]:
    async with open_store(root / "store.db") as opened:
        yield opened


async def test_the_answers_are_those_of_the_store(store: Store) -> None:
    facts = StoredObjects(store)
    node = await store.create(NODES, {"metadata": {"name": "node1"}})
    spec = {"driver": "d", "pool": {"name": "p", "resourceSliceCount": 1}, "nodeName": "node1"}
    await store.create(RESOURCE_SLICES, {"metadata": {"name": "s"}, "spec": spec})
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "node1", "containers": [{"name": "c", "image": "i"}]}}
    await store.create(PODS, pod, "default")
    assert facts.uid_of("nodes", "", "node1") == node["metadata"]["uid"]
    assert facts.uid_of("nodes", "", "absent") is None
    assert (facts.slice_node("s"), facts.slice_node("absent")) == ("node1", None)
    assert [p["metadata"]["name"] for p in facts.pods_on("node1")] == ["p"]
    assert facts.policy() is facts.policy()


async def test_the_policy_is_built_again_only_after_a_change(store: Store) -> None:
    objects, jane = StoredObjects(store), User("jane")
    wanted = Attributes("list", resource="pods")
    before = objects.policy()
    assert before is objects.policy()
    assert before.allows(jane, wanted) is None
    bindings = next(resource for resource in RBAC if resource.plural == "clusterrolebindings")
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "view"}
    subject = {"apiGroup": GROUP, "kind": "User", "name": "jane"}
    await store.create(bindings, {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [subject]})
    assert objects.policy().allows(jane, wanted)
