"""Label and field selectors, in lists and watches."""

import pytest

from devlet.cluster.client import Cluster, EventType, ListOptions, MergePatch, WatchOptions
from devlet.errors import BadRequest
from devlet.objects.kinds import (
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SECRETS,
    Resource,
)
from tests.support.cluster_contract import specimens
from tests.support.cluster_contract.contract import Contract
from tests.support.cluster_contract.reading import names, watching
from tests.support.cluster_contract.specimens import config_map, unique, version

LABELLED = {"none": {}, "one": {"n": "1"}, "two": {"n": "2", "x": ""}, "ten": {"n": "10", "x": "y"}}
NEW_EVENTS = Resource(EVENTS.kind, "events.k8s.io/v1")


class SelectorContract(Contract):
    @pytest.mark.spec("KA-4.2")
    @pytest.mark.parametrize(
        ("selector", "expected"),
        [
            ("", {"none", "one", "two", "ten"}),
            ("n", {"one", "two", "ten"}),
            ("!n", {"none"}),
            ("n=1", {"one"}),
            ("n==1", {"one"}),
            ("n!=1", {"none", "two", "ten"}),
            ("n in (1,2)", {"one", "two"}),
            ("n notin (1, 2)", {"none", "ten"}),
            ("n>1", {"two", "ten"}),
            ("n<3", {"one", "two"}),
            ("x=", {"two"}),
            ("x!=", {"none", "one", "ten"}),
            (" n , x = y ", {"ten"}),
            ("n,!x", {"one"}),
        ],
    )
    async def test_labels_select(self, cluster: Cluster, namespace: str, selector: str, expected: set[str]) -> None:
        for name, labels in LABELLED.items():
            await cluster.create(RESOURCE_CLAIMS, specimens.claim(name, labels=labels), namespace)
        page = await cluster.list(RESOURCE_CLAIMS, namespace, ListOptions(label_selector=selector))
        assert set(names(page)) == expected

    @pytest.mark.spec("KA-4.2")
    @pytest.mark.parametrize("selector", ["=", "a=b,,c", "a in", "a in ()b", "a>x", "!", "a b", "a=b c"])
    async def test_a_bad_label_selector_is_a_bad_request(self, cluster: Cluster, namespace: str, selector: str) -> None:
        with pytest.raises(BadRequest):
            await cluster.list(CONFIG_MAPS, namespace, ListOptions(label_selector=selector))
        with pytest.raises(BadRequest):
            async with cluster.watch(CONFIG_MAPS, namespace, WatchOptions(label_selector=selector)) as events:
                await anext(events)

    @pytest.mark.spec("KA-4.3")
    @pytest.mark.parametrize(
        ("selector", "expected"),
        [
            ("metadata.name=a", {"a"}),
            ("metadata.name!=a", {"b"}),
            ("metadata.name==b,metadata.name!=a", {"b"}),
            ("spec.nodeName=", {"b"}),
            ("spec.nodeName=n1", {"a"}),
            ("spec.nodeName!=n1", {"b"}),
            ("status.phase=Running", {"a"}),
            ("status.phase!=Succeeded,status.phase!=Failed", {"a", "b"}),
            ("spec.restartPolicy=Never", {"b"}),
            ("spec.schedulerName=default-scheduler", {"a", "b"}),
            ("status.podIP=", {"a", "b"}),
            ("status.nominatedNodeName!=x", {"a", "b"}),
        ],
    )
    async def test_fields_of_pods_select(
        self, cluster: Cluster, namespace: str, selector: str, expected: set[str]
    ) -> None:
        await cluster.create(PODS, specimens.pod("a", spec={"nodeName": "n1"}), namespace)
        await cluster.create(PODS, specimens.pod("b", spec={"restartPolicy": "Never"}), namespace)
        running = MergePatch({"status": {"phase": "Running"}})
        await cluster.patch(PODS, "a", running, namespace, subresource="status")
        page = await cluster.list(PODS, namespace, ListOptions(field_selector=selector))
        assert set(names(page)) == expected
        everywhere = ListOptions(field_selector=f"{selector},metadata.namespace={namespace}")
        assert set(names(await cluster.list(PODS, "", everywhere))) == expected

    @pytest.mark.spec("KA-4.3")
    async def test_fields_of_slices_select(self, cluster: Cluster) -> None:
        node, driver = unique("node"), f"{unique('driver')}.example.com"
        one = await cluster.create(RESOURCE_SLICES, specimens.resource_slice(node_name=node, driver=driver))
        await cluster.create(RESOURCE_SLICES, specimens.resource_slice(node_name=node))
        await cluster.create(RESOURCE_SLICES, specimens.resource_slice(driver=driver))
        for version_ in ("v1", "v1beta2", "v1beta1"):
            resource = Resource(RESOURCE_SLICES.kind, f"resource.k8s.io/{version_}")
            options = ListOptions(field_selector=f"spec.driver={driver},spec.nodeName={node}")
            assert names(await cluster.list(resource, "", options)) == [one["metadata"]["name"]]

    @pytest.mark.spec("KA-4.3")
    async def test_fields_of_other_kinds_select(self, cluster: Cluster, namespace: str) -> None:
        made = await cluster.create(NODES, specimens.node())
        name = made["metadata"]["name"]
        mine = f"metadata.name={name}"
        options = ListOptions(field_selector=f"{mine},spec.unschedulable=false")
        assert names(await cluster.list(NODES, "", options)) == [name]
        await cluster.patch(NODES, name, MergePatch({"spec": {"unschedulable": True}}))
        assert names(await cluster.list(NODES, "", options)) == []
        active = ListOptions(field_selector=f"status.phase=Active,metadata.name={namespace}")
        assert names(await cluster.list(NAMESPACES, "", active)) == [namespace]
        await cluster.create(SECRETS, {**specimens.named("s"), "type": "example.com/x"}, namespace)
        typed = ListOptions(field_selector="type=example.com/x")
        assert names(await cluster.list(SECRETS, namespace, typed)) == ["s"]

    @pytest.mark.spec("KA-4.3")
    async def test_fields_of_events_have_the_names_of_their_shape(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(EVENTS, specimens.event(namespace, "a"), namespace)
        await cluster.create(EVENTS, specimens.event(namespace, "b", reason="Other"), namespace)
        for resource, selector in (
            (EVENTS, f"involvedObject.kind=Pod,involvedObject.namespace={namespace},involvedObject.name=p"),
            (EVENTS, "source=tester,type=Normal"),
            (NEW_EVENTS, "regarding.name=p,type=Normal"),
        ):
            options = ListOptions(field_selector=f"{selector},reason=Tested")
            assert names(await cluster.list(resource, namespace, options)) == ["a"]

    @pytest.mark.spec("KA-4.3")
    @pytest.mark.parametrize(
        ("resource", "selector"),
        [
            (CONFIG_MAPS, "data.k=v"),
            (PODS, "spec.foo=x"),
            (RESOURCE_SLICES, "spec.pool.name=x"),
            (RESOURCE_CLAIMS, "spec.nodeName=x"),
            (CONFIG_MAPS, "metadata.name"),
            (CONFIG_MAPS, "metadata.name>1"),
            (NEW_EVENTS, "involvedObject.kind=Pod"),
        ],
        ids=lambda value: getattr(value, "plural", value),
    )
    async def test_a_field_that_cannot_be_selected_is_a_bad_request(
        self, cluster: Cluster, namespace: str, resource: Resource, selector: str
    ) -> None:
        with pytest.raises(BadRequest):
            await cluster.list(resource, namespace if resource.namespaced else "", ListOptions(field_selector=selector))

    @pytest.mark.spec("KA-4.4")
    async def test_a_watch_sees_objects_enter_and_leave_its_selection(self, cluster: Cluster, namespace: str) -> None:
        async def label(n: str) -> int:
            patch = MergePatch({"metadata": {"labels": {"n": n}}})
            return version(await cluster.patch(CONFIG_MAPS, "a", patch, namespace))

        await cluster.create(CONFIG_MAPS, config_map("a", labels={"n": "2"}), namespace)
        async with watching(cluster, CONFIG_MAPS, namespace, label_selector="n=1") as stream:
            entered = await label("1")
            changed = version(await cluster.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": "w"}}), namespace))
            left = await label("7")
            await label("8")
            returned = await label("1")
            await cluster.delete(CONFIG_MAPS, "a", namespace)
            events = [await stream.next() for _ in range(5)]
        assert [event.type for event in events] == [
            EventType.ADDED,
            EventType.MODIFIED,
            EventType.DELETED,
            EventType.ADDED,
            EventType.DELETED,
        ]
        assert [version(event.object) for event in events[:4]] == [entered, changed, left, returned]
        assert {event.object["metadata"]["labels"]["n"] for event in events} == {"1"}
        assert events[2].object["data"] == {"k": "w"}

    @pytest.mark.spec("KA-4.4")
    async def test_a_node_sees_its_pods_come_and_go(self, cluster: Cluster, namespace: str) -> None:
        node = unique("node")
        async with watching(cluster, PODS, "", field_selector=f"spec.nodeName={node}") as stream:
            for name in ("a", "b"):
                await cluster.create(PODS, specimens.pod(name), namespace)
            body = {"metadata": {"name": "b"}, "target": {"kind": "Node", "name": node}}
            await cluster.create(PODS, body, namespace, name="b", subresource="binding")
            await cluster.delete(PODS, "a", namespace)
            await cluster.delete(PODS, "b", namespace)
            assert await stream.take(2) == [(EventType.ADDED, "b"), (EventType.MODIFIED, "b")]

    @pytest.mark.spec("KA-4.4")
    async def test_a_watch_of_one_name_hears_of_nobody_else(self, cluster: Cluster, namespace: str) -> None:
        async with watching(cluster, CONFIG_MAPS, namespace, field_selector="metadata.name=b") as stream:
            for name in ("a", "b", "c"):
                await cluster.create(CONFIG_MAPS, config_map(name), namespace)
            await cluster.delete(CONFIG_MAPS, "b", namespace)
            assert await stream.take(2) == [(EventType.ADDED, "b"), (EventType.DELETED, "b")]
