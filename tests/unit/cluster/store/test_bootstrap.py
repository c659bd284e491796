from pathlib import Path

import pytest

from devlet.cluster.store.bootstrap import bootstrap
from devlet.cluster.store.store import Store, open_store
from devlet.objects.kinds import NAMESPACES, PRIORITY_CLASSES

pytestmark = pytest.mark.anyio


async def test_a_new_cluster_has_namespaces_and_priorities(store: Store) -> None:
    namespaces = [d["metadata"]["name"] for d in (await store.list(NAMESPACES)).items]
    assert namespaces == ["default", "kube-node-lease", "kube-public", "kube-system"]
    classes = {d["metadata"]["name"]: d["value"] for d in (await store.list(PRIORITY_CLASSES)).items}
    assert classes == {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


async def test_a_second_time_changes_nothing(path: Path) -> None:
    async with open_store(path) as store:
        before = store.version
        await bootstrap(store)
        assert store.version == before
    async with open_store(path) as store:
        assert store.version == before
