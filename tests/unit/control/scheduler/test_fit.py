from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.control.scheduler import fit
from devlet.control.scheduler.fit import NodeUse, NodeView, PodNeeds, lacking, mismatch, needs_of, node_view, score
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import PodUID, ResourceName
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod

CPU, MEMORY, GPU = ResourceName("cpu"), ResourceName("memory"), ResourceName("vendor.com/gpu")
ALLOCATABLE = {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "1Gi", "pods": "3", GPU: "2"}


def pod(requests: Document | None = None, ports: list[Document] | None = None, **spec: Any) -> Pod:
    container = {"name": "main", "resources": {"requests": requests or {}}, "ports": ports or []}
    return view(Pod, {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [container], **spec}})


def node(labels: Document | None = None, allocatable: Document = ALLOCATABLE, **spec: Any) -> NodeView:
    metadata = {"name": "n1", "labels": labels or {}}
    return node_view(view(Node, {"metadata": metadata, "spec": spec, "status": {"allocatable": allocatable}}))


def use(*pods: dict[ResourceName, int]) -> NodeUse:
    made = NodeUse()
    for i, amounts in enumerate(pods):
        made.add(PodUID(str(i)), amounts)
    return made


def needs(**spec: Any) -> PodNeeds:
    return needs_of(pod(**spec))


def required(*terms: Document) -> Document:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def expression(key: str, operator: str, *values: str) -> Document:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


TAINT = {"key": "gpu", "value": "a", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("spec", "labels", "on", "reason"),
    [
        ({}, {}, {}, ""),
        ({"nodeName": "n1"}, {}, {}, ""),
        ({"nodeName": "n2"}, {}, {}, "node(s) didn't match the requested node name"),
        ({"nodeSelector": {"a": "b"}}, {"a": "b"}, {}, ""),
        ({"nodeSelector": {"a": "b"}}, {"a": "c"}, {}, "node(s) didn't match Pod's node affinity/selector"),
        ({"affinity": required(expression("a", "In", "b"), expression("c", "Exists"))}, {"c": "1"}, {}, ""),
        ({"affinity": required(expression("a", "Gt", "4"))}, {"a": "5"}, {}, ""),
        ({"affinity": required(expression("a", "Gt", "5"))}, {"a": "5"}, {}, fit.NOT_CHOSEN),
        ({"affinity": required()}, {}, {}, fit.NOT_CHOSEN),
        ({}, {}, {"unschedulable": True}, "node(s) were unschedulable"),
        ({"tolerations": [{"operator": "Exists"}]}, {}, {"unschedulable": True}, ""),
        ({}, {}, {"taints": [TAINT]}, "node(s) had untolerated taint(s)"),
        ({}, {}, {"taints": [TAINT | {"effect": "NoExecute"}]}, fit.TAINTED),
        ({}, {}, {"taints": [TAINT | {"effect": "PreferNoSchedule"}]}, ""),
        ({"tolerations": [{"key": "gpu", "value": "a"}]}, {}, {"taints": [TAINT]}, ""),
    ],
)
def test_a_pod_may_run_where_its_choice_and_the_node_allow_it(
    spec: Document, labels: Document, on: Document, reason: str
) -> None:
    assert mismatch(needs(**spec), node(labels, **on)) == reason


def test_the_first_reason_in_the_order_of_kube_scheduler_is_returned() -> None:
    cordoned = node(unschedulable=True, taints=[TAINT])
    wish = needs(nodeName="n2", nodeSelector={"a": "b"})
    assert mismatch(wish, cordoned) == fit.CORDONED
    assert mismatch(wish, node(taints=[TAINT])) == fit.OTHER_NODE
    assert mismatch(needs(nodeSelector={"a": "b"}), node(taints=[TAINT])) == fit.TAINTED


@pytest.mark.parametrize(
    ("requests", "taken", "reasons"),
    [
        ({"cpu": "1", GPU: "1"}, [{CPU: 1000, GPU: 1}], ()),
        ({"cpu": "1001m"}, [{CPU: 1000}], ("Insufficient cpu",)),
        ({"memory": "2Gi"}, [], ("Insufficient memory",)),
        ({}, [{}, {}, {}], ("Too many pods",)),
        (
            {GPU: "2", "memory": "2Gi", "cpu": "9"},
            [{GPU: 1}],
            ("Insufficient cpu", "Insufficient memory", f"Insufficient {GPU}"),
        ),
        ({"cpu": "9"}, [{}, {}, {}], ("Too many pods", "Insufficient cpu")),
        ({"other.com/x": "1"}, [], ("Insufficient other.com/x",)),
        ({"hugepages-2Mi": "2Mi"}, [], ("Insufficient hugepages-2Mi",)),
    ],
)
def test_all_missing_resources_are_listed(
    requests: Document, taken: list[dict[ResourceName, int]], reasons: tuple[str, ...]
) -> None:
    assert lacking(needs(requests=requests), node(), use(*taken)) == reasons


def test_a_pod_without_requests_fits_on_an_overcommitted_node() -> None:
    assert lacking(needs(), node(), use({CPU: 9000})) == ()


@pytest.mark.spec("DA-5.9c")
def test_resources_that_dra_provides_are_not_required_of_the_node() -> None:
    wish = needs(requests={GPU: "9", "cpu": "1"})
    assert lacking(wish, node(), NodeUse(), {GPU}) == ()
    assert lacking(wish, node(), NodeUse()) == (f"Insufficient {GPU}",)
    assert wish.without({GPU}).amounts == {CPU: 1000}
    assert wish.without(()) is wish


def test_a_port_conflict_is_the_only_reason() -> None:
    wish = needs(requests={"cpu": "9"}, ports=[{"containerPort": 80, "hostPort": 80}])
    busy = NodeUse()
    assert lacking(wish, node(), busy) == ("Insufficient cpu",)
    busy.add(PodUID("x"), {}, wish.ports)
    assert lacking(wish, node(), busy) == ("node(s) didn't have free ports for the requested pod ports",)


def test_a_node_at_its_pod_limit_takes_no_pod() -> None:
    assert lacking(needs(), node(allocatable={"cpu": "1"}), NodeUse()) == ("Too many pods",)


@pytest.mark.spec("DA-5.9d")
def test_a_claim_for_extended_resources_counts_only_once_the_pod_has_its_node() -> None:
    mapping = {"containerName": "main", "resourceName": GPU, "requestName": "r"}
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": [mapping]}}
    containers = [{"name": "main", "resources": {"requests": {GPU: "1"}}}]
    waiting = {"spec": {"containers": containers}, "status": status}
    bound = {"spec": {"containers": containers, "nodeName": "n1"}, "status": status}
    assert needs_of(view(Pod, waiting)).amounts == {GPU: 1}
    assert needs_of(view(Pod, bound)).amounts == {}


amounts = st.dictionaries(st.sampled_from([CPU, MEMORY, GPU]), st.integers(1, 3), max_size=3)
pods = st.lists(amounts, max_size=4)
small = st.fixed_dictionaries({"cpu": st.integers(0, 9), "memory": st.integers(0, 9), GPU: st.integers(0, 9)})


@given(amounts, pods, pods, small, st.integers(0, 6))
def test_a_missing_resource_is_missing_with_more_pods(
    wanted: dict[ResourceName, int],
    there: list[dict[ResourceName, int]],
    more: list[dict[ResourceName, int]],
    has: Document,
    places: int,
) -> None:
    one = node(allocatable=has | {"cpu": f"{has['cpu']}m", "pods": places})
    wish = PodNeeds(wanted, frozenset(), needs().choice)
    few, many = lacking(wish, one, use(*there)), lacking(wish, one, use(*there, *more))
    assert set(few) <= set(many)
    assert score(wish, one, use(*there)) >= score(wish, one, use(*there, *more))


@given(amounts, amounts, pods, small)
def test_larger_requests_lack_at_least_as_much(
    wanted: dict[ResourceName, int],
    more: dict[ResourceName, int],
    there: list[dict[ResourceName, int]],
    has: Document,
) -> None:
    one = node(allocatable=has | {"cpu": f"{has['cpu']}m", "pods": 9})
    total = {name: wanted.get(name, 0) + more.get(name, 0) for name in {**wanted, **more}}
    few = lacking(PodNeeds(wanted, frozenset(), needs().choice), one, use(*there))
    assert set(few) <= set(lacking(PodNeeds(total, frozenset(), needs().choice), one, use(*there)))


def test_an_emptier_node_scores_higher() -> None:
    wish = needs(requests={"cpu": "1", "memory": "512Mi"})
    assert score(wish, node(), NodeUse()) == 50
    assert score(wish, node(), use({CPU: 500, MEMORY: 512 << 20})) == 12  # a quarter of cpu, nothing of memory
    assert score(wish, node(), use({CPU: 9000, MEMORY: 9 << 30})) == 0


def test_missing_requests_count_with_default_values_in_the_score() -> None:
    assert score(needs(), node(allocatable={"cpu": "1", "memory": "800Mi"}), use({})) == (80 + 50) // 2
    assert score(needs(), node(allocatable={"cpu": "1"}), NodeUse()) == 90
    assert score(needs(), node(allocatable={}), NodeUse()) == 0


def test_the_weights_of_matching_preferred_terms_are_added() -> None:
    preferred = [
        {"weight": 7, "preference": expression("a", "Exists")},
        {"weight": 20, "preference": expression("b", "Exists")},
        {"weight": 3, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}},
    ]
    wish = needs(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}})
    assert wish.has_preferences and not needs().has_preferences
    assert fit.preference(wish, node({"a": ""})) == 10
    assert mismatch(wish, node()) == ""


def test_soft_taints_that_are_not_tolerated_are_counted() -> None:
    soft = [TAINT | {"effect": "PreferNoSchedule"}, {"key": "old", "effect": "PreferNoSchedule"}, TAINT]
    assert fit.discouraged(needs(), node(taints=soft)) == 2
    assert fit.discouraged(needs(tolerations=[{"key": "gpu", "operator": "Exists"}]), node(taints=soft)) == 1
    assert fit.discouraged(needs(), node(taints=[TAINT])) == 0


def test_a_heartbeat_does_not_change_the_view_of_a_node() -> None:
    document: Document = {"metadata": {"name": "n1", "labels": {"a": "b"}}, "status": {"allocatable": ALLOCATABLE}}
    later = document | {"status": {"allocatable": ALLOCATABLE, "conditions": [{"type": "Ready", "status": "True"}]}}
    assert node_view(view(Node, document)) == node_view(view(Node, later))
    assert node_view(view(Node, document)) != node({"a": "c"})
