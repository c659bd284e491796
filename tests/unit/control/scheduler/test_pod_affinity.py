from collections.abc import Mapping
from typing import Any

import pytest

from devlet.cluster.client import MergePatch
from devlet.control.scheduler.pod_affinity import (
    AFFINITY_NOT_MET,
    ANTI_AFFINITY_NOT_MET,
    EXISTING_ANTI_AFFINITY,
    AffinityProfile,
    PlacedPods,
    profile_of,
)
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


def profile(
    *,
    affinity: list[Document] | None = None,
    anti_affinity: list[Document] | None = None,
    namespace: str = "default",
    **labels: str,
) -> AffinityProfile:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = {"podAffinity": {required: affinity or []}, "podAntiAffinity": {required: anti_affinity or []}}
    metadata = {"name": "p", "namespace": namespace, "labels": labels}
    return profile_of(view(Pod, {"metadata": metadata, "spec": {"affinity": terms}}))


def placed(**placed: tuple[str, AffinityProfile]) -> PlacedPods:
    made = PlacedPods(lambda name: NODES.get(name, {}), lambda name: NAMESPACES.get(name, {}))
    for uid, (where, one) in placed.items():
        made.add(PodUID(uid), NodeName(where), one)
    return made


def obstacles(others: PlacedPods, one: AffinityProfile) -> dict[str, str]:
    """Return why each excluded node is excluded."""
    topology = others.topology_filter(one)
    assert topology is not None
    return {name: text for name, labels in NODES.items() if (text := topology.obstacle(labels))}


def test_nothing_is_computed_while_no_pod_has_terms() -> None:
    assert placed(a=("n1", profile(app="web"))).topology_filter(profile(app="web")) is None


def test_affinity_allows_the_domains_of_the_selected_pods() -> None:
    others = placed(a=("n1", profile(app="web")), b=("n3", profile(app="db")))
    assert obstacles(others, profile(affinity=[term(ZONE)])) == {"n3": AFFINITY_NOT_MET, "n4": AFFINITY_NOT_MET}
    assert obstacles(others, profile(affinity=[term(HOST)])).keys() == {"n2", "n3", "n4"}


def test_all_affinity_terms_must_match_the_same_pod() -> None:
    affinity = [term(ZONE), term(ZONE, app="db")]
    others = placed(a=("n1", profile(app="web")), b=("n1", profile(app="db")))
    assert obstacles(others, profile(affinity=affinity)).keys() == NODES.keys()


def test_the_first_pod_of_a_group_may_run_on_any_node_with_the_topology_label() -> None:
    assert obstacles(placed(), profile(affinity=[term(ZONE)], app="web")) == {"n4": AFFINITY_NOT_MET}
    assert obstacles(placed(), profile(affinity=[term(ZONE)], app="db")).keys() == NODES.keys()
    there = placed(a=("n3", profile(app="web")))
    assert obstacles(there, profile(affinity=[term(ZONE)], app="web")).keys() == {"n1", "n2", "n4"}


def test_anti_affinity_excludes_the_domains_of_the_selected_pods() -> None:
    others = placed(a=("n1", profile(app="web")))
    assert obstacles(others, profile(anti_affinity=[term(ZONE)])) == {
        "n1": ANTI_AFFINITY_NOT_MET,
        "n2": ANTI_AFFINITY_NOT_MET,
    }
    assert obstacles(others, profile(anti_affinity=[term(HOST)])) == {"n1": ANTI_AFFINITY_NOT_MET}


def test_the_anti_affinity_of_placed_pods_excludes_nodes() -> None:
    others = placed(a=("n1", profile(anti_affinity=[term(HOST)])))
    assert obstacles(others, profile(app="web")) == {"n1": EXISTING_ANTI_AFFINITY}
    assert obstacles(others, profile(app="db")) == {}


def test_a_removed_pod_does_not_count() -> None:
    others = placed(a=("n1", profile(anti_affinity=[term(HOST)], app="web")))
    others.remove(PodUID("a"))
    assert others.topology_filter(profile(app="web")) is None
    assert obstacles(others, profile(anti_affinity=[term(HOST)])) == {}


@pytest.mark.parametrize(
    ("more", "namespace", "matches"),
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
def test_a_term_matches_pods_of_its_namespaces(more: Document, namespace: str, matches: bool) -> None:
    others = placed(a=("n1", profile(app="web", namespace=namespace)))
    assert bool(obstacles(others, profile(anti_affinity=[term(HOST, **more)]))) is matches


def test_a_term_without_a_selector_matches_no_pod() -> None:
    others = placed(a=("n1", profile(app="web")))
    assert obstacles(others, profile(anti_affinity=[{"topologyKey": HOST}])) == {}


def test_match_label_keys_compare_with_the_pods_own_values() -> None:
    others = placed(a=("n1", profile(app="web", version="1")), b=("n2", profile(app="web", version="2")))
    same = profile(anti_affinity=[term(HOST, matchLabelKeys=["version", "absent"])], version="1")
    other = profile(anti_affinity=[term(HOST, mismatchLabelKeys=["version"])], version="1")
    assert obstacles(others, same).keys() == {"n1"}
    assert obstacles(others, other).keys() == {"n2"}


def test_pods_with_equal_terms_and_labels_have_the_same_key() -> None:
    assert profile(anti_affinity=[term(HOST)], app="web").key == profile(anti_affinity=[term(HOST)], app="web").key
    assert profile(anti_affinity=[term(HOST)], app="web").key != profile(anti_affinity=[term(ZONE)], app="web").key


def test_an_error_names_the_field() -> None:
    wrong = {"topologyKey": HOST, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}
    path = r"podAntiAffinity\.requiredDuringSchedulingIgnoredDuringExecution\[0\]\.labelSelector\.matchExpressions\[0\]"
    with pytest.raises(InvalidInput, match=path):
        profile(anti_affinity=[wrong])


# With the scheduler


def one_of(app: str, name: str, **affinity: Document) -> Document:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    made = pod(name, affinity={kind: {required: [each]} for kind, each in affinity.items()})
    made["metadata"]["labels"] = {"app": app}
    return made


def host(name: str) -> Document:
    return node(name, labels={HOST: name})


@pytest.mark.anyio
async def test_pods_with_anti_affinity_get_a_node_each_and_the_next_waits(world: World) -> None:
    await world.add(host("n1"), host("n2"))
    async with world.scheduling():
        await world.add(*(one_of("web", name, podAntiAffinity=term(HOST)) for name in ("a", "b")))
        assert set((await world.bound("a", "b")).values()) == {"n1", "n2"}
        await world.add(one_of("web", "c", podAntiAffinity=term(HOST)), one_of("web", "d"))
        assert await world.reason("c") == f"0/2 nodes are available: 2 {ANTI_AFFINITY_NOT_MET}"
        assert await world.reason("d") == f"0/2 nodes are available: 2 {EXISTING_ANTI_AFFINITY}"
        await world.add(host("n3"))
        await world.bound("c")
        await world.remove("a", "b", "c")
        await world.bound("d")


@pytest.mark.anyio
async def test_a_pod_with_affinity_waits_for_the_other_pod(world: World) -> None:
    await world.add(host("n1"), host("n2"))
    async with world.scheduling():
        await world.add(one_of("side", "side", podAffinity=term(HOST)))
        assert await world.reason("side") == f"0/2 nodes are available: 2 {AFFINITY_NOT_MET}"
        await world.add(one_of("web", "web"))
        assert len(set((await world.bound("side", "web")).values())) == 1


@pytest.mark.anyio
async def test_new_labels_of_a_placed_pod_are_respected(world: World) -> None:
    await world.add(host("n1"), one_of("db", "first"))
    async with world.scheduling():
        await world.bound("first")
        await world.add(one_of("side", "side", podAffinity=term(HOST)))
        await world.reason("side")
        await world.store.patch(kinds.PODS, "first", MergePatch({"metadata": {"labels": {"app": "web"}}}), "default")
        assert await world.bound("side") == {"side": "n1"}


@pytest.mark.anyio
async def test_new_labels_of_a_namespace_are_respected(world: World) -> None:
    await world.add(host("n1"), one_of("web", "web"))
    async with world.scheduling():
        await world.bound("web")
        others = term(HOST, namespaceSelector={"matchLabels": {"team": "a"}})
        await world.add(one_of("side", "side", podAffinity=others))
        await world.reason("side")
        await world.store.patch(kinds.NAMESPACES, "default", MergePatch({"metadata": {"labels": {"team": "a"}}}))
        assert await world.bound("side") == {"side": "n1"}
