"""The choice of nodes and devices."""

from datetime import UTC, datetime

import pytest

from devlet.control.scheduler import extended_resources, fit
from devlet.control.scheduler.devices import Devices
from devlet.control.scheduler.nodes import NodeTable
from devlet.control.scheduler.placing import Placer, obstacles
from devlet.control.scheduler.subject import Subject, read_subject
from devlet.control.search_time import SearchTime
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import NodeName, PodUID
from devlet.objects.kind_rules import default
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod
from devlet.objects.types.slice import ResourceSlice
from tests.support.workloads import DRIVER, claim, device_class, node, pod, slice_of, wish
from tests.unit.control.conftest import allocation_on
from tests.unit.control.scheduler.test_bad_input import hard

EXTENDED = "example.com/gpu"


def with_gpus(name: str) -> Document:
    """Return a node where a device plugin offers a GPU."""
    found = node(name)
    found["status"]["allocatable"][EXTENDED] = "1"
    return found


class Board:
    """Nodes, devices, and pods to be placed."""

    def __init__(self, *documents: Document, candidates: int = 10) -> None:
        self.devices = Devices()
        self.table = NodeTable(self.devices.allocator)
        self.placer = Placer(self.table, self.devices, candidates)
        self.claims: dict[str, ResourceClaim] = {}
        self.classes: list[DeviceClass] = []
        for each in documents:
            self.add(each)

    def add(self, document: Document) -> None:
        document = default(document, now=datetime(2026, 1, 1, tzinfo=UTC))
        match document["kind"]:
            case "Node":
                self.table.put(view(Node, document))
            case "ResourceSlice":
                self.devices.see_slice(None, view(ResourceSlice, document))
            case "DeviceClass":
                self.classes.append(view(DeviceClass, document))
                self.devices.see_class(None, self.classes[-1])
            case _:
                self.claims[document["metadata"]["name"]] = view(ResourceClaim, document)

    def subject(self, document: Document) -> Subject:
        document["metadata"].setdefault("uid", document["metadata"]["name"])
        classes = extended_resources.classes_by_resource(self.classes)
        found = read_subject(view(Pod, document), lambda _, name: self.claims.get(name), classes)
        assert isinstance(found, Subject), found
        return found

    def place(self, document: Document) -> tuple[str, list[str]] | None:
        """Return the node and the devices."""
        found = self.placer.place(self.subject(document), SearchTime(0))
        if found is None:
            return None
        return found.node, [f"{each.pool}/{each.device}" for one in found.granted for each in one.results]

    def use(self, name: str, node: str, cpu: str) -> None:
        needs = fit.needs_of(view(Pod, pod(name, requests={"cpu": cpu})))
        self.table.occupy(PodUID(name), NodeName(node), needs)


def test_a_pod_is_placed_where_its_devices_are() -> None:
    board = Board(node("n1"), node("n2"), device_class(), slice_of("n2", 1), claim("c"))
    assert board.place(pod("train", claim="c")) == ("n2", ["n2/gpu-0"])


def test_free_devices_do_not_help_on_a_full_node() -> None:
    board = Board(node("n1"), node("n2"), device_class(), slice_of("n2", 1), claim("c"))
    board.use("other", "n2", "4")
    assert board.place(pod("train", claim="c", requests={"cpu": "1"})) is None


def test_the_emptier_node_is_chosen() -> None:
    board = Board(node("n1"), node("n2"))
    board.use("other", "n1", "2")
    assert board.place(pod("train", requests={"cpu": "1"})) == ("n2", [])


def test_there_is_no_place_without_nodes() -> None:
    assert Board(device_class(), claim("c")).place(pod("train", claim="c")) is None
    assert Board().place(pod("train")) is None


@pytest.mark.spec("DA-5.2d")
def test_an_earlier_alternative_counts_more_than_free_capacity() -> None:
    big = {"name": "big", "deviceClassName": DRIVER, "count": 2}
    small = {"name": "small", "deviceClassName": DRIVER}
    wanted = claim("c", {"name": "gpu", "firstAvailable": [big, small]})
    board = Board(node("n1"), node("n2"), device_class(), slice_of("n1", 1), slice_of("n2", 2), wanted)
    board.use("other", "n2", "3")
    assert board.place(pod("train", claim="c")) == ("n2", ["n2/gpu-0", "n2/gpu-1"])


def test_pods_are_spread_when_not_all_nodes_are_searched() -> None:
    board = Board(*(node(f"n{i}") for i in range(4)), candidates=1)
    assert [board.place(pod("train")) for _ in range(5)] == [(f"n{i % 4}", []) for i in range(5)]


@pytest.mark.spec("DA-5.4c")
def test_an_allocated_claim_decides_the_node() -> None:
    board = Board(node("n1"), node("n2"), {**claim("c"), "status": {"allocation": allocation_on("n2")}})
    assert board.place(pod("train", claim="c")) == ("n2", [])
    subject = board.subject(pod("train", claim="c"))
    assert obstacles(subject, board.table.entries[0], None) == ("the devices of claim c cannot be used there",)


def test_a_placed_pod_cannot_use_devices_of_another_node() -> None:
    board = Board(node("n1"), node("n2"), {**claim("c"), "status": {"allocation": allocation_on("n2")}})
    subject = board.subject(pod("train", claim="c", nodeName="n1"))
    assert obstacles(subject, board.table.entries[0], None) == ("the devices of claim c cannot be used there",)
    assert obstacles(subject, board.table.entries[1], None) == (fit.OTHER_NODE,)
    assert board.place(pod("train", claim="c", nodeName="n2")) == ("n2", [])


@pytest.mark.spec("DA-11.16b")
def test_a_placed_pod_gets_devices_even_if_its_node_is_full() -> None:
    board = Board(node("n1"), node("n2"), device_class(), slice_of("n1", 1), slice_of("n2", 1), claim("c"))
    board.use("other", "n2", "4")
    found = pod("train", claim="c", requests={"cpu": "1"}, nodeName="n2")
    assert board.place(found) == ("n2", ["n2/gpu-0"])


def test_a_node_that_offers_the_resource_is_preferred_to_a_claim() -> None:
    board = Board(node("n1"), with_gpus("n2"), device_class(extended=EXTENDED), slice_of("n1", 1))
    wanted = pod("train", requests={EXTENDED: "1"})
    assert board.place(wanted) == ("n2", [])
    board.use("other", "n2", "4")
    found = board.placer.place(board.subject(pod("t", requests={EXTENDED: "1", "cpu": "1"})), SearchTime(0))
    assert found is not None and found.node == "n1" and found.extended is not None
    assert found.granted[-1].claim is found.extended.claim and found.granted[-1].key == (
        "default",
        "<extended-resources>t",
    )


@pytest.mark.spec("DA-11.03a")
def test_a_timeout_on_one_node_does_not_affect_the_others() -> None:
    board = Board(node("n1"), node("n2"), device_class(), *hard("n1"), slice_of("n2", 12), claim("c", wish(count=12)))
    time = SearchTime(0.2)
    found = board.placer.place(board.subject(pod("train", claim="c")), time)
    assert found is not None and found.node == "n2" and time.exceeded
