from collections.abc import Mapping
from typing import Any

import pytest

from devlet.cluster.client import MergePatch
from devlet.control.scheduler.neighbours import KEPT_AWAY, NOT_APART, NOT_NEAR, Neighbours, Social, of_pod
from devlet.errors import InvalidInput
from devlet.objects import kinds
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import NodeName, PodUID
from devlet.objects.types.pod import Pod
from tests.support.workloads import node, pod
from tests.unit.control.conftest import World

ZONE, HOST = "zone", "host"
NODES: dict[str, Mapping[str, str]] = {
    "n1": {ZONE: "east", HOST: "n1"},
    "n2": {ZONE: "east", HOST: "n2"},
    "n3": {ZONE: "west", HOST: "n3"},
    "n4": {HOST: "n4"},
}
NAMESPACES = {"default": {"team": "a"}, "other": {"team": "b"}}


def term(key: str, app: str = "web", **more: Any) -> Document:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def social(
    *,
    near: list[Document] | None = None,
    apart: list[Document] | None = None,
    namespace: str = "default",
    **labels: str,
) -> Social:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {"podAffinity": {required: near or []}, "podAntiAffinity": {required: apart or []}}
    metadata = {"name": "p", "namespace": namespace, "labels": labels}
    return of_pod(view(Pod, {"metadata": metadata, "spec": {"affinity": affinity}}))


def neighbours(**placed: tuple[str, Social]) -> Neighbours:
    made = Neighbours(lambda name: NODES.get(name, {}), lambda name: NAMESPACES.get(name, {}))
    for uid, (where, one) in placed.items():
        made.add(PodUID(uid), NodeName(where), one)
    return made


def obstacles(others: Neighbours, one: Social) -> dict[str, str]:
    """By node, of those that are out of the question."""
    company = others.company(one)
    assert company is not None
    return {name: text for name, labels in NODES.items() if (text := company.obstacle(labels))}


def test_nothing_is_computed_for_pods_that_nobody_concerns() -> None:
    assert neighbours(a=("n1", social(app="web"))).company(social(app="web")) is None


def test_a_pod_goes_near_those_that_it_has_to_be_near() -> None:
    others = neighbours(a=("n1", social(app="web")), b=("n3", social(app="db")))
    assert obstacles(others, social(near=[term(ZONE)])) == {"n3": NOT_NEAR, "n4": NOT_NEAR}
    assert obstacles(others, social(near=[term(HOST)])).keys() == {"n2", "n3", "n4"}


def test_all_terms_have_to_mean_the_same_pod() -> None:
    near = [term(ZONE), term(ZONE, app="db")]
    others = neighbours(a=("n1", social(app="web")), b=("n1", social(app="db")))
    assert obstacles(others, social(near=near)).keys() == NODES.keys()


def test_the_first_of_a_group_goes_anywhere_that_has_the_label() -> None:
    assert obstacles(neighbours(), social(near=[term(ZONE)], app="web")) == {"n4": NOT_NEAR}
    assert obstacles(neighbours(), social(near=[term(ZONE)], app="db")).keys() == NODES.keys()
    there = neighbours(a=("n3", social(app="web")))
    assert obstacles(there, social(near=[term(ZONE)], app="web")).keys() == {"n1", "n2", "n4"}


def test_a_pod_stays_apart_from_others() -> None:
    others = neighbours(a=("n1", social(app="web")))
    assert obstacles(others, social(apart=[term(ZONE)])) == {"n1": NOT_APART, "n2": NOT_APART}
    assert obstacles(others, social(apart=[term(HOST)])) == {"n1": NOT_APART}


def test_those_who_are_there_keep_others_away() -> None:
    others = neighbours(a=("n1", social(apart=[term(HOST)])))
    assert obstacles(others, social(app="web")) == {"n1": KEPT_AWAY}
    assert obstacles(others, social(app="db")) == {}


def test_who_has_gone_does_not_count() -> None:
    others = neighbours(a=("n1", social(apart=[term(HOST)], app="web")))
    others.remove(PodUID("a"))
    assert others.company(social(app="web")) is None
    assert obstacles(others, social(apart=[term(HOST)])) == {}


@pytest.mark.parametrize(
    ("more", "namespace", "means"),
    [
        ({}, "default", True),
        ({}, "other", False),
        ({"namespaces": ["other"]}, "other", True),
        ({"namespaces": ["other"]}, "default", False),
        ({"namespaceSelector": {}}, "other", True),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, "other", True),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, "default", False),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}, "namespaces": ["default"]}, "default", True),
    ],
)
def test_a_term_means_pods_of_its_namespaces(more: Document, namespace: str, means: bool) -> None:
    others = neighbours(a=("n1", social(app="web", namespace=namespace)))
    assert bool(obstacles(others, social(apart=[term(HOST, **more)]))) is means


def test_a_term_without_a_selector_means_nobody() -> None:
    others = neighbours(a=("n1", social(app="web")))
    assert obstacles(others, social(apart=[{"topologyKey": HOST}])) == {}


def test_keys_of_labels_mean_the_pods_own_values() -> None:
    others = neighbours(a=("n1", social(app="web", version="1")), b=("n2", social(app="web", version="2")))
    same = social(apart=[term(HOST, matchLabelKeys=["version", "absent"])], version="1")
    other = social(apart=[term(HOST, mismatchLabelKeys=["version"])], version="1")
    assert obstacles(others, same).keys() == {"n1"}
    assert obstacles(others, other).keys() == {"n2"}


def test_pods_that_get_along_with_the_same_others_have_the_same_key() -> None:
    assert social(apart=[term(HOST)], app="web").key == social(apart=[term(HOST)], app="web").key
    assert social(apart=[term(HOST)], app="web").key != social(apart=[term(ZONE)], app="web").key


def test_what_cannot_be_read_is_named() -> None:
    wrong = {"topologyKey": HOST, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}
    path = r"podAntiAffinity\.requiredDuringSchedulingIgnoredDuringExecution\[0\]\.labelSelector\.matchExpressions\[0\]"
    with pytest.raises(InvalidInput, match=path):
        social(apart=[wrong])


# With the scheduler


def one_of(app: str, name: str, **affinity: Document) -> Document:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    made = pod(name, affinity={kind: {required: [each]} for kind, each in affinity.items()})
    made["metadata"]["labels"] = {"app": app}
    return made


def host(name: str) -> Document:
    return node(name, labels={HOST: name})


@pytest.mark.anyio
async def test_pods_of_one_kind_are_on_nodes_of_their_own_and_the_next_waits_for_one(world: World) -> None:
    await world.add(host("n1"), host("n2"))
    async with world.scheduling():
        await world.add(*(one_of("web", name, podAntiAffinity=term(HOST)) for name in ("a", "b")))
        assert set((await world.bound("a", "b")).values()) == {"n1", "n2"}
        await world.add(one_of("web", "c", podAntiAffinity=term(HOST)), one_of("web", "d"))
        assert await world.told("c") == f"0/2 nodes are available: 2 {NOT_APART}"
        assert await world.told("d") == f"0/2 nodes are available: 2 {KEPT_AWAY}"
        await world.add(host("n3"))
        await world.bound("c")
        await world.remove("a", "b", "c")
        await world.bound("d")


@pytest.mark.anyio
async def test_who_has_to_be_near_another_waits_for_it(world: World) -> None:
    await world.add(host("n1"), host("n2"))
    async with world.scheduling():
        await world.add(one_of("side", "side", podAffinity=term(HOST)))
        assert await world.told("side") == f"0/2 nodes are available: 2 {NOT_NEAR}"
        await world.add(one_of("web", "web"))
        assert len(set((await world.bound("side", "web")).values())) == 1


@pytest.mark.anyio
async def test_labels_that_change_change_who_is_meant(world: World) -> None:
    await world.add(host("n1"), one_of("db", "first"))
    async with world.scheduling():
        await world.bound("first")
        await world.add(one_of("side", "side", podAffinity=term(HOST)))
        await world.told("side")
        await world.store.patch(kinds.PODS, "first", MergePatch({"metadata": {"labels": {"app": "web"}}}), "default")
        assert await world.bound("side") == {"side": "n1"}


@pytest.mark.anyio
async def test_a_namespace_that_gets_a_label_is_meant_from_then_on(world: World) -> None:
    await world.add(host("n1"), one_of("web", "web"))
    async with world.scheduling():
        await world.bound("web")
        others = term(HOST, namespaceSelector={"matchLabels": {"team": "a"}})
        await world.add(one_of("side", "side", podAffinity=others))
        await world.told("side")
        await world.store.patch(kinds.NAMESPACES, "default", MergePatch({"metadata": {"labels": {"team": "a"}}}))
        assert await world.bound("side") == {"side": "n1"}
