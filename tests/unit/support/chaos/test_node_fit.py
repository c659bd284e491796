from collections.abc import Mapping

import pytest

from devlet.objects.documents import Document
from tests.support.chaos.node_fit import CORDONED, FULL, NOT_CHOSEN, TAINTED, allocatable, obstacles, requests
from tests.support.workloads import claim, node, pod

TAINT = {"key": "only", "value": "experts", "effect": "NoSchedule"}
PLACE: Document = {
    "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
}


def with_spec(**spec: object) -> Document:
    return {**node("n1"), "spec": spec}


def test_an_empty_node_has_room() -> None:
    assert obstacles(pod("train", requests={"cpu": "4"}), node("n1"), [], [], []) == []


@pytest.mark.parametrize(
    ("where", "asked", "found"),
    [
        (with_spec(unschedulable=True), {}, [CORDONED]),
        (with_spec(taints=[TAINT]), {}, [TAINTED]),
        (with_spec(taints=[TAINT | {"effect": "PreferNoSchedule"}]), {}, []),
        (node("n1"), {"nodeSelector": {"zone": "a"}}, [NOT_CHOSEN]),
        (node("n1", labels={"zone": "a"}), {"nodeSelector": {"zone": "a"}}, []),
        (node("n1", pods="0"), {}, [FULL]),
        (node("n1"), {"requests": {"cpu": "4001m"}}, ["Insufficient cpu"]),
        (
            node("n1", pods="0"),
            {"requests": {"v.com/x": "1", "cpu": "9"}},
            [FULL, "Insufficient v.com/x", "Insufficient cpu"],
        ),
    ],
)
def test_what_keeps_a_pod_away_is_named(where: Document, asked: Mapping[str, object], found: list[str]) -> None:
    assert obstacles(pod("train", **asked), where, [], [], []) == found  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("toleration", "helps"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "only", "operator": "Exists"}, True),
        ({"key": "only", "value": "experts", "effect": "NoSchedule"}, True),
        ({"key": "only", "value": "others"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "only", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_a_taint_keeps_away_who_does_not_tolerate_it(toleration: Document, helps: bool) -> None:
    found = obstacles(pod("train", tolerations=[toleration]), with_spec(taints=[TAINT]), [], [], [])
    assert found == ([] if helps else [TAINTED])


def test_pods_use_up_their_own_node() -> None:
    train, bound = pod("train", requests={"cpu": "2"}), [pod("first", requests={"cpu": "3"}, nodeName="n1")]
    assert obstacles(train, node("n1"), [], bound, []) == ["Insufficient cpu"]
    assert obstacles(train, node("n2"), [], bound, []) == []
    assert obstacles(train, node("n1", pods="1", cpu="5"), [], bound, []) == [FULL]


def test_devices_that_are_allocated_have_to_be_used_where_they_are() -> None:
    held = claim("mine") | {"status": {"allocation": {"nodeSelector": PLACE}}}
    assert obstacles(pod("train"), node("n1"), [held], [], []) == ["the devices of claim mine cannot be used there"]
    assert obstacles(pod("train"), node("n2"), [held], [], []) == []
    anywhere = claim("mine") | {"status": {"allocation": {}}}
    assert obstacles(pod("train"), node("n1"), [anywhere], [], []) == []


def test_what_classes_provide_is_not_asked_of_the_node() -> None:
    train = pod("train", requests={"example.com/gpu": "2"})
    assert obstacles(train, node("n1"), [], [], []) == ["Insufficient example.com/gpu"]
    assert obstacles(train, node("n1"), [], [], ["example.com/gpu"]) == []


def test_amounts_are_read() -> None:
    assert str(allocatable(node("n1", cpu="2"))["cpu"]) == "2"
    assert requests({"name": "idle"}) == {}
