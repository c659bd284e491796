"""One object seen through several API versions: whatever version wrote it, every version can read it."""

import pytest

from devlet.cluster.client import Cluster, MergePatch
from devlet.errors import InvalidObject
from devlet.objects.documents import copy
from devlet.objects.kinds import EVENTS, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from tests.support.cluster_contract import specimens
from tests.support.cluster_contract.contract import Contract
from tests.support.cluster_contract.reading import watching
from tests.support.cluster_contract.specimens import CLAIMS_V1BETA1, CLAIMS_V1BETA2, DRIVER, SLICES_V1BETA1, claim

NEW_EVENTS = Resource(EVENTS.kind, "events.k8s.io/v1")


class ConversionContract(Contract):
    async def test_a_claim_has_a_shape_in_each_version(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(RESOURCE_CLAIMS, claim("c"), namespace)
        newer = await cluster.get(CLAIMS_V1BETA2, "c", namespace)
        older = await cluster.get(CLAIMS_V1BETA1, "c", namespace)
        assert (newer["apiVersion"], newer["spec"]) == ("resource.k8s.io/v1beta2", created["spec"])
        assert older["spec"]["devices"]["requests"][0]["deviceClassName"] == DRIVER
        uids = {document["metadata"]["uid"] for document in (created, newer, older)}
        versions = {document["metadata"]["resourceVersion"] for document in (created, newer, older)}
        assert (len(uids), len(versions)) == (1, 1)

    async def test_an_older_version_writes_what_the_newest_reads(self, cluster: Cluster, namespace: str) -> None:
        request = {"name": "gpu", "deviceClassName": DRIVER, "count": 2, "allocationMode": "ExactCount"}
        document = {**specimens.named("c"), "spec": {"devices": {"requests": [request]}}}
        created = await cluster.create(CLAIMS_V1BETA1, document, namespace)
        assert created["spec"]["devices"]["requests"] == [request]
        newest = await cluster.get(RESOURCE_CLAIMS, "c", namespace)
        assert newest["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2
        labelled = await cluster.update(
            CLAIMS_V1BETA1, {**created, "metadata": {**created["metadata"], "labels": {"a": "b"}}}
        )
        assert (labelled["apiVersion"], labelled["metadata"]["labels"]) == ("resource.k8s.io/v1beta1", {"a": "b"})
        assert (await cluster.get(RESOURCE_CLAIMS, "c", namespace))["spec"] == newest["spec"]

    async def test_writing_back_what_another_version_read_changes_nothing(
        self, cluster: Cluster, namespace: str
    ) -> None:
        created = await cluster.create(RESOURCE_CLAIMS, claim("c"), namespace)
        for resource in (CLAIMS_V1BETA1, CLAIMS_V1BETA2):
            read = await cluster.get(resource, "c", namespace)
            assert await cluster.update(resource, copy(read)) == read
        assert await cluster.get(RESOURCE_CLAIMS, "c", namespace) == created

    async def test_a_slice_has_a_shape_in_each_version(self, cluster: Cluster) -> None:
        created = await cluster.create(RESOURCE_SLICES, specimens.resource_slice())
        name = created["metadata"]["name"]
        older = await cluster.get(SLICES_V1BETA1, name)
        device = created["spec"]["devices"][0]
        basic = {"attributes": device["attributes"], "capacity": device["capacity"]}
        assert older["spec"]["devices"] == [{"name": device["name"], "basic": basic}]
        patched = await cluster.patch(SLICES_V1BETA1, name, MergePatch({"spec": {"pool": {"generation": 2}}}))
        assert patched["spec"]["devices"] == older["spec"]["devices"]
        assert (await cluster.get(RESOURCE_SLICES, name))["spec"]["devices"] == created["spec"]["devices"]

    async def test_lists_watches_and_deletions_speak_the_version_they_are_asked_in(
        self, cluster: Cluster, namespace: str
    ) -> None:
        async with watching(cluster, CLAIMS_V1BETA1, namespace) as stream:
            await cluster.create(RESOURCE_CLAIMS, claim("c"), namespace)
            event = await stream.next()
            page = await cluster.list(CLAIMS_V1BETA1, namespace)
            deleted = await cluster.delete(CLAIMS_V1BETA1, "c", namespace)
        for document in (event.object, page.items[0], deleted):
            assert document["spec"]["devices"]["requests"][0]["deviceClassName"] == DRIVER

    async def test_an_error_names_the_field_in_this_or_the_newest_version(
        self, cluster: Cluster, namespace: str
    ) -> None:
        request = {"name": "gpu", "deviceClassName": "Not A Class"}
        document = {**specimens.named("c"), "spec": {"devices": {"requests": [request]}}}
        with pytest.raises(InvalidObject) as refused:
            await cluster.create(CLAIMS_V1BETA1, document, namespace)
        (cause,) = refused.value.causes
        assert cause.field.replace(".exactly", "") == "spec.devices.requests[0].deviceClassName"

    async def test_unknown_keys_are_carried_along_or_dropped(self, cluster: Cluster, namespace: str) -> None:
        document = claim("c")
        document["spec"]["devices"]["requests"][0]["exactly"]["novelty"] = {"deep": [1]}
        document["spec"]["novelty"] = "x"
        await cluster.create(RESOURCE_CLAIMS, document, namespace)
        newest = await cluster.get(RESOURCE_CLAIMS, "c", namespace)
        older = await cluster.get(CLAIMS_V1BETA1, "c", namespace)
        kept = not self.drops_unknown_keys
        assert ("novelty" in newest["spec"], "novelty" in older["spec"]) == (kept, kept)
        assert ("novelty" in newest["spec"]["devices"]["requests"][0]["exactly"]) is kept
        older["metadata"]["labels"] = {"written": "back"}
        await cluster.update(CLAIMS_V1BETA1, older)
        assert (await cluster.get(RESOURCE_CLAIMS, "c", namespace))["spec"] == newest["spec"]

    async def test_an_event_has_two_shapes(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(EVENTS, specimens.event(namespace, "e"), namespace)
        new = await cluster.get(NEW_EVENTS, "e", namespace)
        assert new["apiVersion"] == "events.k8s.io/v1"
        assert (new["regarding"], new["note"]) == (created["involvedObject"], created["message"])
        assert (new["deprecatedSource"], new["deprecatedCount"]) == ({"component": "tester"}, 1)
        assert not new.keys() & {"involvedObject", "message", "source", "count"}

    async def test_the_new_shape_of_an_event_is_read_in_the_old_one(self, cluster: Cluster, namespace: str) -> None:
        document = {
            **specimens.named("e"),
            "eventTime": "2024-01-02T03:04:05.000006Z",
            "reportingController": "tester",
            "reportingInstance": "tester-1",
            "action": "Testing",
            "reason": "Tested",
            "type": "Normal",
            "note": "it happened",
            "regarding": {"kind": "Pod", "namespace": namespace, "name": "p", "apiVersion": "v1"},
        }
        created = await cluster.create(NEW_EVENTS, document, namespace)
        assert created["note"] == "it happened"
        old = await cluster.get(EVENTS, "e", namespace)
        assert (old["involvedObject"], old["message"]) == (document["regarding"], "it happened")
        assert (old["reportingComponent"], old["eventTime"]) == ("tester", "2024-01-02T03:04:05.000006Z")
        series = {"series": {"count": 2, "lastObservedTime": "2024-01-02T03:05:05.000006Z"}}
        patched = await cluster.patch(NEW_EVENTS, "e", MergePatch(series), namespace)
        assert patched["series"]["count"] == 2

    async def test_the_new_shape_of_an_event_needs_its_fields(self, cluster: Cluster, namespace: str) -> None:
        document = {**specimens.named("e"), "regarding": {"namespace": namespace}, "note": "no time"}
        with pytest.raises(InvalidObject) as refused:
            await cluster.create(NEW_EVENTS, document, namespace)
        assert "eventTime" in {cause.field for cause in refused.value.causes}

    async def test_an_event_belongs_to_the_namespace_of_its_object(self, cluster: Cluster, namespace: str) -> None:
        document = specimens.event("elsewhere")
        with pytest.raises(InvalidObject) as refused:
            await cluster.create(EVENTS, document, namespace)
        assert {cause.field for cause in refused.value.causes} == {"involvedObject.namespace"}
