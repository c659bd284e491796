from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from devlet.cluster.client import MergePatch, WatchOptions
from devlet.cluster.quarantine import Quarantine
from devlet.cluster.store.store import Store, open_store
from devlet.control.custom_resource_controller import DEFINITIONS, CustomResourceController
from devlet.errors import NotFound
from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.objects.custom_resources import CLEANUP, DEFINITION
from devlet.objects.kinds import BUILT_IN
from devlet.testing import waiting
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
    """Wait until the definition is established, or gone."""
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


async def test_the_objects_of_a_definition_are_deleted_with_it(root: Path) -> None:
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


async def test_a_definition_whose_objects_cannot_be_deleted_does_not_block_others(root: Path) -> None:
    other = definition()
    other["metadata"]["name"] = "gadgets.example.com"
    other["spec"]["names"] = {"plural": "gadgets", "kind": "Gadget"}
    async with open_store(root / "c.db", kinds=KINDS) as store:
        async with running(CustomResourceController(store, store.catalogue, SystemClock()).run):
            await store.create(DEFINITIONS, definition())
            await until(store, established=True)
            widgets = store.catalogue.resource("example.com/v1", "widgets")
            await store.create(widgets, {"metadata": {"name": "w", "finalizers": ["example.com/x"]}}, "default")
            await store.delete(DEFINITIONS, "widgets.example.com")
            read = partial(store.get, widgets, "w", "default")
            await waiting.until(read, lambda found: "deletionTimestamp" in found["metadata"])
            await store.create(DEFINITIONS, other)
            await waiting.until(partial(store.get, DEFINITIONS, "gadgets.example.com"), lambda found: "status" in found)
            assert store.catalogue.resource("example.com/v1", "gadgets").kind.kind == "Gadget"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: until(store, gone=True))
                await store.patch(widgets, "w", MergePatch({"metadata": {"finalizers": None}}), "default")


async def stored_as_it_is(store: Store, document: dict[str, Any]) -> None:
    """Store a definition as release 0.1 did, which did not check the types."""
    whole = {"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", **document}
    whole["metadata"] = {**document["metadata"], "uid": document["metadata"]["name"]}
    await store._ledger.write(DEFINITION, ("", document["metadata"]["name"]), whole).durable()


@pytest.mark.parametrize("subresources", [True, 5])
async def test_a_definition_that_cannot_be_served_is_quarantined_and_the_others_are_served(
    root: Path, subresources: Any
) -> None:
    aside = Quarantine()
    bad = definition()
    bad["metadata"]["name"] = "gadgets.example.com"
    bad["spec"]["versions"][0]["subresources"] = subresources
    async with open_store(root / "c.db", kinds=KINDS) as store:
        await stored_as_it_is(store, bad)
        unreadable = {"metadata": {"name": "x.example.com", "finalizers": [CLEANUP]}, "spec": True}
        await stored_as_it_is(store, unreadable)
        async with running(CustomResourceController(store, store.catalogue, SystemClock(), aside).run):
            await store.create(DEFINITIONS, definition())
            await until(store, established=True)
            assert store.catalogue.resource("example.com/v1", "widgets").kind.kind == "Widget"
            assert store.table(DEFINITIONS).get(("", "x.example.com")) is not None
            assert [name for _, _, name in aside.entries] == ["gadgets.example.com", "x.example.com"]
            await store.delete(DEFINITIONS, "gadgets.example.com")
            await store.delete(DEFINITIONS, "x.example.com")


async def test_a_definition_with_the_name_of_another_resource_is_quarantined(root: Path) -> None:
    aside, second = Quarantine(), definition()
    second["metadata"]["name"] = "gadgets.example.com"
    async with open_store(root / "c.db", kinds=KINDS) as store:
        await stored_as_it_is(store, second)
        async with running(CustomResourceController(store, store.catalogue, SystemClock(), aside).run):
            await store.create(DEFINITIONS, definition())
            await until(store, established=True)
            assert [name for _, _, name in aside.entries] == ["gadgets.example.com"]
            await store.delete(DEFINITIONS, "gadgets.example.com")
            assert store.catalogue.resource("example.com/v1", "widgets").kind.kind == "Widget"


async def test_a_kind_belongs_to_one_definition(root: Path) -> None:
    second = definition()
    second["metadata"]["name"] = "gadgets.example.com"
    second["spec"]["names"] = {"plural": "gadgets", "kind": "Widget"}
    async with open_store(root / "c.db", kinds=KINDS) as store:
        async with running(CustomResourceController(store, store.catalogue, SystemClock()).run):
            await store.create(DEFINITIONS, definition())
            await until(store, established=True)
            await store.create(DEFINITIONS, second)
            await store.delete(DEFINITIONS, "gadgets.example.com")
            assert store.catalogue.of_kind("example.com/v1", "Widget").plural == "widgets"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: until(store, gone=True))
                await store.delete(DEFINITIONS, "widgets.example.com")
