"""The nodes and what pods use of them."""

from devlet.control.scheduler import fit
from devlet.control.scheduler.devices import Devices
from devlet.control.scheduler.nodes import NodeTable
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import NodeName, PodUID
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod
from tests.support.workloads import node, pod

N1, N2, POD = NodeName("n1"), NodeName("n2"), PodUID("p")
NEEDS = fit.needs_of(view(Pod, pod("p", requests={"cpu": "1"})))


def a_node(document: Document) -> Node:
    return view(Node, document)


def table(*names: str) -> NodeTable:
    found = NodeTable(Devices().allocator)
    for name in names:
        found.put(a_node(node(name)))
    return found


def test_nodes_are_ordered_by_name() -> None:
    found = table("n2", "n1")
    assert [entry.name for entry in found.entries] == ["n1", "n2"] and found.index("n2") == 1
    assert [each.name for each in found.scan.nodes] == ["n1", "n2"]


def test_a_heartbeat_is_not_a_change() -> None:
    found = table("n1")
    before, scan = found.entries[0].node, found.scan
    later = node("n1")
    later["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:00:00Z"
    assert not found.put(a_node(later))
    assert found.entries[0].node is before and found.scan is scan


def test_new_labels_are_a_change() -> None:
    found = table("n1")
    scan = found.scan
    assert found.put(a_node(node("n1", labels={"zone": "a"})))
    assert found.scan is not scan and found.entries[0].node.metadata.labels["zone"] == "a"


def test_more_capacity_is_a_change_but_the_allocator_keeps_the_node() -> None:
    found = table("n1")
    scan = found.scan
    assert found.put(a_node(node("n1", cpu="8")))
    assert found.scan is scan


def test_a_pod_is_counted_on_one_node() -> None:
    found = table("n1", "n2")
    found.occupy(POD, N1, NEEDS)
    found.occupy(POD, N1, NEEDS)
    assert found.entries[0].use.used == {"cpu": 1000}
    found.occupy(POD, N2, NEEDS)
    assert found.entries[0].use.used == {} and found.entries[1].use.count == 1 and found.where(POD) == N2
    assert found.leave(POD) and not found.leave(POD)
    assert found.entries[1].use.count == 0


def test_pods_stay_counted_while_their_node_is_removed() -> None:
    found = table("n1")
    found.occupy(POD, N1, NEEDS)
    found.remove(N1)
    assert len(found) == 0 and found.get("n1") is None
    found.put(a_node(node("n1")))
    assert found.entries[0].use.used == {"cpu": 1000}


def test_a_pod_can_be_counted_on_an_unknown_node() -> None:
    found = table()
    found.occupy(POD, N1, NEEDS)
    found.put(a_node(node("n1")))
    assert found.entries[0].use.used == {"cpu": 1000}
    found.remove(N1)
    assert found.leave(POD)
    found.put(a_node(node("n1")))
    assert found.entries[0].use.count == 0
