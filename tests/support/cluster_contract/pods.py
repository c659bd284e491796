"""What only pods have: binding to a node, eviction, and a deletion that takes its time."""

import re
from typing import Any

import pytest

from devlet.cluster.client import Cluster, DeleteOptions, EventType, MergePatch, Preconditions, WriteOptions
from devlet.errors import BadRequest, Conflict, Forbidden, InvalidInput, NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import CONFIG_MAPS, PODS
from devlet.objects.values.timestamps import parse_time
from tests.support.cluster_contract import specimens
from tests.support.cluster_contract.contract import Contract
from tests.support.cluster_contract.reading import exists, watching
from tests.support.cluster_contract.specimens import unique


def binding(name: str, node: str, **metadata: Any) -> Document:
    target = {"kind": "Node", "apiVersion": "v1", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **metadata}, "target": target}


def eviction(name: str, **delete_options: Any) -> Document:
    body: Document = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return {**body, "deleteOptions": delete_options} if delete_options else body


def condition(pod: Document, type_: str) -> Document | None:
    found: list[Document] = [c for c in pod["status"].get("conditions", []) if c["type"] == type_]
    return found[0] if found else None


def grace(pod: Document) -> int:
    seconds: int = pod["metadata"]["deletionGracePeriodSeconds"]
    return seconds


async def bound(cluster: Cluster, namespace: str, name: str = "p", **pod: Any) -> Document:
    await cluster.create(PODS, specimens.pod(name, **pod), namespace)
    body = binding(name, unique("node"))
    await cluster.create(PODS, body, namespace, name=name, subresource="binding")
    return await cluster.get(PODS, name, namespace)


async def remove(cluster: Cluster, namespace: str, name: str = "p") -> Document:
    return await cluster.delete(PODS, name, namespace, DeleteOptions(grace_period=0))


@pytest.mark.spec("KA-3.3")
class PodContract(Contract):
    async def test_a_binding_puts_the_pod_on_its_node(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(PODS, specimens.pod("p", labels={"a": "b"}), namespace)
        body = binding("p", "n1", annotations={"c": "d"}, labels={"e": "f"})
        answer = await cluster.create(PODS, body, namespace, name="p", subresource="binding")
        assert (answer["kind"], answer["status"]) == ("Status", "Success")
        pod = await cluster.get(PODS, "p", namespace)
        assert pod["spec"]["nodeName"] == "n1"
        assert pod["metadata"]["annotations"]["c"] == "d"
        assert pod["metadata"]["labels"] == {"a": "b", "e": "f"}
        assert pod["metadata"]["generation"] == created["metadata"]["generation"]
        scheduled = condition(pod, "PodScheduled")
        assert scheduled is not None
        assert scheduled["status"] == "True" and re.fullmatch(r".+T.+Z", scheduled["lastTransitionTime"])

    async def test_a_binding_clears_the_nomination(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(PODS, specimens.pod("p"), namespace)
        nominated = MergePatch({"status": {"nominatedNodeName": "n2"}})
        await cluster.patch(PODS, "p", nominated, namespace, subresource="status")
        await cluster.create(PODS, binding("p", "n1"), namespace, name="p", subresource="binding")
        assert "nominatedNodeName" not in (await cluster.get(PODS, "p", namespace))["status"]

    async def test_a_pod_is_bound_once(self, cluster: Cluster, namespace: str) -> None:
        pod = await bound(cluster, namespace)
        with pytest.raises(Conflict) as refused:
            await cluster.create(PODS, binding("p", "n2"), namespace, name="p", subresource="binding")
        assert f'pod p is already assigned to node "{pod["spec"]["nodeName"]}"' in str(refused.value)
        assert refused.value.resource == "pods/binding"

    async def test_a_pod_that_is_being_deleted_is_not_bound(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(PODS, specimens.pod("p", finalizers=["example.com/hold"]), namespace)
        await cluster.delete(PODS, "p", namespace)
        with pytest.raises(Conflict):
            await cluster.create(PODS, binding("p", "n1"), namespace, name="p", subresource="binding")
        await cluster.patch(PODS, "p", MergePatch({"metadata": {"finalizers": None}}), namespace)

    async def test_a_binding_for_another_pod_is_refused(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(PODS, specimens.pod("p"), namespace)
        with pytest.raises(Conflict):
            body = binding("p", "n1", uid="00000000-0000-4000-8000-000000000000")
            await cluster.create(PODS, body, namespace, name="p", subresource="binding")
        with pytest.raises(BadRequest):
            await cluster.create(PODS, binding("q", "n1"), namespace, name="p", subresource="binding")
        with pytest.raises(NotFound):
            await cluster.create(PODS, binding("q", "n1"), namespace, name="q", subresource="binding")

    @pytest.mark.parametrize(
        "target", [{}, {"kind": "Node"}, {"kind": "Pod", "name": "n1"}, {"kind": "Node", "name": ""}]
    )
    async def test_a_binding_needs_a_node(self, cluster: Cluster, namespace: str, target: Document) -> None:
        await cluster.create(PODS, specimens.pod("p"), namespace)
        body = {**binding("p", ""), "target": target}
        with pytest.raises(self.bad_request):
            await cluster.create(PODS, body, namespace, name="p", subresource="binding")

    @pytest.mark.parametrize(
        "body", [{"target": "n1"}, {"metadata": ["p"]}, {"metadata": {"labels": "x"}}, {"target": {"name": 1}}]
    )
    async def test_a_malformed_binding_is_refused(self, cluster: Cluster, namespace: str, body: Document) -> None:
        await cluster.create(PODS, specimens.pod("p"), namespace)
        with pytest.raises(InvalidInput):
            await cluster.create(PODS, {**binding("p", "n1"), **body}, namespace, name="p", subresource="binding")

    async def test_kinds_without_a_binding_do_not_have_one(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(CONFIG_MAPS, specimens.config_map("a"), namespace)
        with pytest.raises(NotFound):
            await cluster.create(CONFIG_MAPS, binding("a", "n1"), namespace, name="a", subresource="binding")

    async def test_a_dry_binding_binds_nothing(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(PODS, specimens.pod("p"), namespace)
        options = WriteOptions(dry_run=True)
        await cluster.create(PODS, binding("p", "n1"), namespace, name="p", subresource="binding", options=options)
        assert await cluster.get(PODS, "p", namespace) == created

    async def test_an_eviction_is_a_graceful_deletion_with_a_reason(self, cluster: Cluster, namespace: str) -> None:
        await bound(cluster, namespace)
        body = eviction("p", gracePeriodSeconds=7)
        answer = await cluster.create(PODS, body, namespace, name="p", subresource="eviction")
        assert (answer["kind"], answer["status"]) == ("Status", "Success")
        pod = await cluster.get(PODS, "p", namespace)
        target = condition(pod, "DisruptionTarget")
        assert target is not None
        assert (target["status"], target["reason"], grace(pod)) == ("True", "EvictionByEvictionAPI", 7)
        await remove(cluster, namespace)

    async def test_an_unscheduled_pod_is_evicted_at_once(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(PODS, specimens.pod("p"), namespace)
        await cluster.create(PODS, eviction("p"), namespace, name="p", subresource="eviction")
        assert not await exists(cluster, PODS, "p", namespace)

    async def test_an_eviction_minds_preconditions(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(PODS, specimens.pod("p"), namespace)
        body = eviction("p", preconditions={"uid": "00000000-0000-4000-8000-000000000000"})
        with pytest.raises(Conflict):
            await cluster.create(PODS, body, namespace, name="p", subresource="eviction")
        with pytest.raises(NotFound):
            await cluster.create(PODS, eviction("q"), namespace, name="q", subresource="eviction")
        assert "deletionTimestamp" not in (await cluster.get(PODS, "p", namespace))["metadata"]

    async def test_a_dry_eviction_evicts_nobody(self, cluster: Cluster, namespace: str) -> None:
        created = await cluster.create(PODS, specimens.pod("p"), namespace)
        body, options = eviction("p"), WriteOptions(dry_run=True)
        await cluster.create(PODS, body, namespace, name="p", subresource="eviction", options=options)
        assert await cluster.get(PODS, "p", namespace) == created

    @pytest.mark.spec("KA-3.5")
    async def test_an_unscheduled_pod_goes_at_once(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(PODS, specimens.pod("p"), namespace)
        answer = await cluster.delete(PODS, "p", namespace, DeleteOptions(grace_period=30))
        assert (answer["kind"], answer["metadata"]["name"]) == ("Pod", "p")
        assert not await exists(cluster, PODS, "p", namespace)

    @pytest.mark.spec("KA-3.5")
    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    async def test_a_finished_pod_goes_at_once(self, cluster: Cluster, namespace: str, phase: str) -> None:
        await bound(cluster, namespace)
        await cluster.patch(PODS, "p", MergePatch({"status": {"phase": phase}}), namespace, subresource="status")
        await cluster.delete(PODS, "p", namespace)
        assert not await exists(cluster, PODS, "p", namespace)

    @pytest.mark.spec("KA-3.5")
    async def test_a_pod_on_a_node_waits_for_it(self, cluster: Cluster, namespace: str) -> None:
        before = await bound(cluster, namespace)
        async with watching(cluster, PODS, namespace) as stream:
            deleted = await cluster.delete(PODS, "p", namespace)
            assert grace(deleted) == 30
            assert deleted["metadata"]["generation"] == before["metadata"]["generation"] + 1
            late = parse_time(deleted["metadata"]["deletionTimestamp"]) - parse_time(
                deleted["metadata"]["creationTimestamp"]
            )
            assert 30 <= late.total_seconds() < 60
            marked = await stream.next()
            assert (marked.type, grace(marked.object)) == (EventType.MODIFIED, 30)
            await remove(cluster, namespace)
            while (last := await stream.next()).type is EventType.MODIFIED:
                assert grace(last.object) == 0  # the grace may be seen to shrink first
            assert last.type is EventType.DELETED

    @pytest.mark.spec("KA-3.5")
    async def test_grace_only_ever_shrinks(self, cluster: Cluster, namespace: str) -> None:
        await bound(cluster, namespace)
        seen = [grace(await cluster.delete(PODS, "p", namespace))]
        for seconds in (5, 50):
            await cluster.delete(PODS, "p", namespace, DeleteOptions(grace_period=seconds))
            seen.append(grace(await cluster.get(PODS, "p", namespace)))
        assert seen == [30, 5, 5]
        await remove(cluster, namespace)
        assert not await exists(cluster, PODS, "p", namespace)

    @pytest.mark.spec("KA-3.5")
    async def test_the_pod_says_how_long_it_takes(self, cluster: Cluster, namespace: str) -> None:
        await bound(cluster, namespace, spec={"terminationGracePeriodSeconds": 3})
        assert grace(await cluster.delete(PODS, "p", namespace)) == 3
        await remove(cluster, namespace)

    @pytest.mark.spec("KA-3.5")
    async def test_a_negative_grace_is_one_second(self, cluster: Cluster, namespace: str) -> None:
        await bound(cluster, namespace)
        assert grace(await cluster.delete(PODS, "p", namespace, DeleteOptions(grace_period=-5))) == 1
        await remove(cluster, namespace)

    @pytest.mark.spec("KA-3.5")
    async def test_a_node_agent_removes_the_pod_it_means(self, cluster: Cluster, namespace: str) -> None:
        pod = await bound(cluster, namespace)
        await cluster.delete(PODS, "p", namespace)
        other = DeleteOptions(grace_period=0, preconditions=Preconditions(uid="00000000-0000-4000-8000-000000000000"))
        with pytest.raises(Conflict):
            await cluster.delete(PODS, "p", namespace, other)
        mine = DeleteOptions(grace_period=0, preconditions=Preconditions(uid=pod["metadata"]["uid"]))
        await cluster.delete(PODS, "p", namespace, mine)
        assert not await exists(cluster, PODS, "p", namespace)

    @pytest.mark.spec("KA-3.5")
    async def test_a_finalizer_outlasts_the_grace(self, cluster: Cluster, namespace: str) -> None:
        await bound(cluster, namespace, finalizers=["example.com/hold"])
        await cluster.delete(PODS, "p", namespace)
        assert grace(await remove(cluster, namespace)) == 0
        assert await exists(cluster, PODS, "p", namespace)
        await cluster.patch(PODS, "p", MergePatch({"metadata": {"finalizers": None}}), namespace)
        assert not await exists(cluster, PODS, "p", namespace)

    @pytest.mark.spec("KA-3.5")
    async def test_the_last_finalizer_does_not_end_the_grace(self, cluster: Cluster, namespace: str) -> None:
        await bound(cluster, namespace, finalizers=["example.com/hold"])
        await cluster.delete(PODS, "p", namespace)
        await cluster.patch(PODS, "p", MergePatch({"metadata": {"finalizers": None}}), namespace)
        assert await exists(cluster, PODS, "p", namespace)
        await remove(cluster, namespace)
        assert not await exists(cluster, PODS, "p", namespace)

    async def test_a_priority_class_must_exist(self, cluster: Cluster, namespace: str) -> None:
        with pytest.raises(Forbidden, match="no PriorityClass with name absent was found"):
            await cluster.create(PODS, specimens.pod("p", spec={"priorityClassName": "absent"}), namespace)
        assert (await cluster.create(PODS, specimens.pod("p"), namespace))["spec"]["priority"] == 0
