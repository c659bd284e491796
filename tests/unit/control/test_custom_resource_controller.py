from pathlib import Path
from typing import Any

import anyio
import pytest

from devlet.cluster.client import WatchOptions
from devlet.cluster.store.store import Store, open_store
from devlet.control.custom_resource_controller import DEFINITIONS, CustomResourceController
from devlet.errors import NotFound
from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.objects.custom_resources import CLEANUP, DEFINITION
from devlet.objects.kinds import BUILT_IN
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio
KINDS = (*BUILT_IN, DEFINITION)


def definition() -> dict[str, Any]:
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True}, {"name": "v2", "served": True}],
        },
    }


async def until(store: Store, **wanted: bool) -> None:
    """Until the definition is established, or gone."""
    with deadline():
        async with store.watch(DEFINITIONS, options=WatchOptions()) as events:
            async for event in events:
                conditions = (event.object.get("status") or {}).get("conditions") or ()
                if wanted.get("gone") and event.type == "DELETED":
                    return
                if wanted.get("established") and any(c["type"] == "Established" for c in conditions):
                    return


async def test_objects_of_a_defined_kind_are_stored_in_all_its_versions(root: Path) -> None:
    async with open_store(root / "c.db", kinds=KINDS) as store:
        async with running(CustomResourceController(store, store.catalogue, SystemClock()).run):
            await store.create(DEFINITIONS, definition())
            await until(store, established=True)
            assert (await store.get(DEFINITIONS, "widgets.example.com"))["metadata"]["finalizers"] == [CLEANUP]
            v1, v2 = (store.catalogue.resource(f"example.com/{v}", "widgets") for v in ("v1", "v2"))
            await store.create(v2, {"metadata": {"name": "w"}, "spec": {"any": ["thing"]}}, "default")
            assert (await store.get(v1, "w", "default"))["spec"] == {"any": ["thing"]}
    async with open_store(root / "c.db", kinds=KINDS) as store:
        async with running(CustomResourceController(store, store.catalogue, SystemClock()).run):
            again = store.catalogue.resource("example.com/v1", "widgets")
            assert (await store.get(again, "w", "default"))["apiVersion"] == "example.com/v1"


async def test_a_definition_takes_its_objects_along(root: Path) -> None:
    async with open_store(root / "c.db", kinds=KINDS) as store:
        async with running(CustomResourceController(store, store.catalogue, SystemClock()).run):
            await store.create(DEFINITIONS, definition())
            await until(store, established=True)
            widgets = store.catalogue.resource("example.com/v1", "widgets")
            await store.create(widgets, {"metadata": {"name": "w"}}, "default")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: until(store, gone=True))
                await store.delete(DEFINITIONS, "widgets.example.com")
            with pytest.raises(NotFound):
                await store.get(widgets, "w", "default")
