"""Why a pod has no node, in one line."""

import pytest

from devlet.control.scheduler import reasons
from devlet.objects.documents import Document
from devlet.objects.identifiers import DriverName
from tests.support.workloads import claim, device_class, node, pod, slice_of, wish
from tests.unit.control.scheduler.test_placing import EXTENDED, Board, with_gpus


def why(board: Board, document: Document) -> str:
    return reasons.reason(board.subject(document), board.table, board.devices, 10.0)


def test_there_is_a_reason_without_nodes() -> None:
    assert why(Board(), pod("train")) == reasons.NO_NODES


def test_a_pod_that_fits_has_no_reason() -> None:
    board = Board(node("n1"), device_class(), slice_of("n1", 1), claim("c"))
    assert why(board, pod("train", claim="c")) == "" and why(board, pod("plain")) == ""


@pytest.mark.spec("DA-5.4d")
def test_nodes_are_counted_by_reason() -> None:
    board = Board(node("n1"), node("n2"), node("n3", labels={"zone": "a"}), device_class(), slice_of("n3", 1))
    board.add(claim("c", wish(count=2)))
    text = why(board, pod("train", claim="c", nodeSelector={"zone": "a"}))
    assert text.startswith("0/3 nodes are available: 2 node(s) didn't match Pod's node affinity/selector; 1 ")
    board.use("other", "n3", "4")
    text = why(board, pod("train", claim="c", requests={"cpu": "1"}, nodeSelector={"zone": "a"}))
    assert text == ("0/3 nodes are available: 2 node(s) didn't match Pod's node affinity/selector; 1 Insufficient cpu")


@pytest.mark.spec("DA-11.04a")
def test_reasons_about_devices_have_their_numbers() -> None:
    board = Board(node("n1"), device_class(), slice_of("n1", 1), claim("c", wish(count=2)))
    text = why(board, pod("train", claim="c"))
    assert "cannot allocate all claims" not in text and "2" in text and "\n" not in text


def test_nodes_where_dra_provides_a_resource_are_counted_apart() -> None:
    board = Board(node("n1"), with_gpus("n2"), device_class(extended=EXTENDED))
    text = why(board, pod("train", requests={EXTENDED: "2"}))
    assert text.startswith("0/2 nodes are available: ") and f"1 Insufficient {EXTENDED}" in text


def test_a_reason_fits_into_an_event() -> None:
    board = Board(*(node(f"n{i}") for i in range(3)))
    amounts = {f"example.com/{'x' * 60}-{i}": "1" for i in range(30)}
    text = why(board, pod("train", requests=amounts))
    assert len(text) <= reasons.LENGTH_MAX


def test_the_most_frequent_reasons_are_listed() -> None:
    board = Board(*(node(f"n{i}") for i in range(2)))
    text = why(board, pod("train", requests={f"example.com/r{i}": "1" for i in range(12)}))
    assert text.count(";") == reasons.REASONS_MAX and text.endswith("8 for other reasons")


def test_drivers_that_are_gone_are_named_with_their_node_or_the_number_of_nodes() -> None:
    some = {DriverName("a.example.com"): {"n1"}, DriverName("b.example.com"): {"n1", "n2"}}
    assert reasons.hidden(some) == "drivers that are not connected: a.example.com on n1, b.example.com on 2 nodes"
    many = {DriverName(f"d{number}.example.com"): {"n1"} for number in range(5)}
    assert reasons.hidden(many).endswith("d2.example.com on n1 and 2 more")
