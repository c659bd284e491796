"""Many writers, one object: versions decide, no write gets lost, and what changes nothing is no change."""

import anyio
import pytest

from devlet.cluster.client import Cluster, JsonPatch, ListOptions, MergePatch, StrategicMergePatch
from devlet.errors import AlreadyExists, Conflict, InvalidObject, NotFound
from devlet.objects.documents import Document, copy
from devlet.objects.kinds import CONFIG_MAPS, EVENTS, LEASES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from tests.support.cluster_contract import specimens
from tests.support.cluster_contract.contract import Contract
from tests.support.cluster_contract.reading import names, watching
from tests.support.cluster_contract.specimens import config_map, version

WRITERS = 64
OVERWRITABLE: list[tuple[Resource, Document]] = [
    (CONFIG_MAPS, config_map("a")),
    (NODES, specimens.node(specimens.unique("node"))),
    (RESOURCE_CLAIMS, specimens.claim("a")),
    (RESOURCE_SLICES, specimens.resource_slice(specimens.unique("slice"))),
]


def place(document: Document, namespace: str) -> Document:
    return {**document, "metadata": {**document["metadata"], "namespace": namespace}}


@pytest.mark.spec("KA-3.2")
class ConcurrencyContract(Contract):
    async def test_an_update_of_the_current_version_is_taken(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        updated = await cluster.update(CONFIG_MAPS, {**created, "data": {"k": "w"}})
        assert (updated["data"], version(updated) > version(created)) == ({"k": "w"}, True)

    async def test_an_update_of_an_older_version_is_a_conflict(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(RESOURCE_CLAIMS, specimens.claim("c"), namespace)
        await cluster.patch(RESOURCE_CLAIMS, "c", MergePatch({"metadata": {"labels": {"a": "b"}}}), namespace)
        with pytest.raises(Conflict) as refused:
            await cluster.update(RESOURCE_CLAIMS, created)
        assert 'Operation cannot be fulfilled on resourceclaims.resource.k8s.io "c"' in str(refused.value)
        assert (refused.value.resource, refused.value.name) == ("resourceclaims.resource.k8s.io", "c")

    @pytest.mark.parametrize(("resource", "document"), OVERWRITABLE, ids=lambda value: getattr(value, "plural", ""))
    async def test_an_update_without_version_overwrites(
        self, cluster: Cluster, namespace: str, resource: Resource, document: Document
    ) -> None:
        where = namespace if resource.namespaced else ""
        created = await cluster.create(resource, document, where)
        del created["metadata"]["resourceVersion"]
        created["metadata"]["labels"] = {"over": "written"}
        assert (await cluster.update(resource, created))["metadata"]["labels"] == {"over": "written"}

    async def test_a_lease_is_not_overwritten_blindly(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(LEASES, specimens.lease("l"), namespace)
        blind = place(specimens.lease("l"), namespace)
        with pytest.raises(InvalidObject) as refused:
            await cluster.update(LEASES, blind)
        assert [cause.field for cause in refused.value.causes] == ["metadata.resourceVersion"]
        created["spec"]["holderIdentity"] = "you"
        assert (await cluster.update(LEASES, created))["spec"]["holderIdentity"] == "you"

    async def test_an_update_creates_leases_and_events_only(self, cluster: Cluster, namespace: str) -> None:
        lease = await cluster.update(LEASES, place(specimens.lease("new"), namespace))
        event = await cluster.update(EVENTS, place(specimens.event(namespace, "new"), namespace))
        assert await cluster.get(LEASES, "new", namespace) == lease
        assert await cluster.get(EVENTS, "new", namespace) == event
        with pytest.raises(NotFound):
            await cluster.update(CONFIG_MAPS, place(config_map("new"), namespace))
        with pytest.raises(NotFound):
            await cluster.update(PODS, place(specimens.pod("new"), namespace))

    async def test_a_patch_conflicts_only_if_it_names_a_version(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        await cluster.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": "w"}}), namespace)
        guarded = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}, "data": {"n": "1"}}
        for patch in (
            MergePatch(guarded),
            StrategicMergePatch(guarded),
            JsonPatch([{"op": "replace", "path": "/metadata/resourceVersion", "value": str(version(created))}]),
        ):
            with pytest.raises(Conflict):
                await cluster.patch(CONFIG_MAPS, "a", patch, namespace)
        patched = await cluster.patch(CONFIG_MAPS, "a", MergePatch({"data": {"n": "1"}}), namespace)
        assert patched["data"] == {"k": "w", "n": "1"}

    async def test_a_write_that_changes_nothing_is_no_change(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a", labels={"a": "b"}), namespace)
        async with watching(cluster, CONFIG_MAPS, namespace) as stream:
            again = [
                await cluster.update(CONFIG_MAPS, copy(created)),
                await cluster.update(CONFIG_MAPS, copy(created)),
                await cluster.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": "v"}}), namespace),
                await cluster.patch(CONFIG_MAPS, "a", StrategicMergePatch({"data": {"none": None}}), namespace),
                await cluster.patch(CONFIG_MAPS, "a", JsonPatch([]), namespace),
            ]
            assert all(document == created for document in again)
            changed = await cluster.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": "w"}}), namespace)
            assert (await stream.next()).object == changed

    async def test_a_status_that_changes_nothing_is_no_change(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(PODS, specimens.pod("p"), namespace)
        phase = MergePatch({"status": {"phase": "Running"}})
        once = await cluster.patch(PODS, "p", phase, namespace, subresource="status")
        assert await cluster.patch(PODS, "p", phase, namespace, subresource="status") == once

    async def test_an_answer_is_what_everybody_then_reads(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        page = await cluster.list(CONFIG_MAPS, namespace)
        assert created in list(page.items)
        assert int(page.resource_version) >= version(created)
        at_least = ListOptions(resource_version=created["metadata"]["resourceVersion"])
        assert created in list((await cluster.list(CONFIG_MAPS, namespace, at_least)).items)

    async def test_concurrent_patches_all_land(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, config_map("a", data={}), namespace)
        versions: set[int] = set()

        async def write(i: int) -> None:
            answer = await cluster.patch(CONFIG_MAPS, "a", MergePatch({"data": {f"k{i}": "v"}}), namespace)
            assert answer["data"][f"k{i}"] == "v"
            versions.add(version(answer))

        async with anyio.create_task_group() as tasks:
            for i in range(WRITERS):
                tasks.start_soon(write, i)
        assert len((await cluster.get(CONFIG_MAPS, "a", namespace))["data"]) == WRITERS
        assert len(versions) == WRITERS

    async def test_one_of_many_creators_wins(self, cluster: Cluster, namespace: str) -> None:
        won: list[Document] = []
        lost: list[int] = []

        async def write(i: int) -> None:
            try:
                won.append(await cluster.create(CONFIG_MAPS, config_map("a", data={"i": str(i)}), namespace))
            except AlreadyExists:
                lost.append(i)

        async with anyio.create_task_group() as tasks:
            for i in range(WRITERS):
                tasks.start_soon(write, i)
        assert (len(won), len(lost)) == (1, WRITERS - 1)
        assert await cluster.get(CONFIG_MAPS, "a", namespace) == won[0]

    async def test_one_of_many_updates_of_a_version_wins(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace)
        won: list[Document] = []
        lost: list[int] = []

        async def write(i: int) -> None:
            try:
                won.append(await cluster.update(CONFIG_MAPS, {**copy(created), "data": {"i": str(i)}}))
            except Conflict:
                lost.append(i)

        async with anyio.create_task_group() as tasks:
            for i in range(WRITERS):
                tasks.start_soon(write, i)
        assert (len(won), len(lost)) == (1, WRITERS - 1)
        assert await cluster.get(CONFIG_MAPS, "a", namespace) == won[0]

    async def test_whoever_reads_again_after_a_conflict_counts_right(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, config_map("n", data={"n": "0"}), namespace)

        async def count() -> None:
            while True:
                document = await cluster.get(CONFIG_MAPS, "n", namespace)
                document["data"]["n"] = str(int(document["data"]["n"]) + 1)
                try:
                    await cluster.update(CONFIG_MAPS, document)
                    return
                except Conflict:
                    continue

        async with anyio.create_task_group() as tasks:
            for _ in range(16):
                tasks.start_soon(count)
        assert (await cluster.get(CONFIG_MAPS, "n", namespace))["data"] == {"n": "16"}

    async def test_writers_of_many_objects_do_not_disturb_each_other(self, cluster: Cluster, namespace: str) -> None:
        async def live(i: int) -> None:
            name = f"o{i:02}"
            await cluster.create(CONFIG_MAPS, config_map(name), namespace)
            await cluster.patch(CONFIG_MAPS, name, MergePatch({"data": {"k": str(i)}}), namespace)
            if i % 2:
                await cluster.delete(CONFIG_MAPS, name, namespace)

        async with anyio.create_task_group() as tasks:
            for i in range(WRITERS):
                tasks.start_soon(live, i)
        page = await cluster.list(CONFIG_MAPS, namespace)
        assert names(page) == [f"o{i:02}" for i in range(0, WRITERS, 2)]
