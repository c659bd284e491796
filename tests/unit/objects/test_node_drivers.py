"""The annotation with the DRA drivers of a node."""

import pytest

from devlet.objects.documents import view
from devlet.objects.identifiers import DriverName
from devlet.objects.node_drivers import (
    ANNOTATION,
    MAX_TEXT,
    NodeDriver,
    decode,
    encode,
    gone_drivers,
    is_of_gone_driver,
)
from devlet.objects.types.node import Node
from devlet.objects.types.slice import ResourceSlice

GPU = NodeDriver(DriverName("gpu.example.com"), gone_since="2026-05-01T12:00:00Z")
NIC = NodeDriver(DriverName("nic.example.com"), registered_since="2026-05-01T11:58:12Z")
TEXT = (
    '[{"name":"gpu.example.com","goneSince":"2026-05-01T12:00:00Z"},'
    '{"name":"nic.example.com","registeredSince":"2026-05-01T11:58:12Z"}]'
)


def node(text: str | None, name: str = "n1") -> Node:
    return view(Node, {"metadata": {"name": name, "annotations": {ANNOTATION: text} if text is not None else {}}})


def slice_of(driver: str, where: dict[str, object]) -> ResourceSlice:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return view(ResourceSlice, {"metadata": {"name": "s"}, "spec": {"driver": driver, "pool": pool, **where}})


def test_drivers_are_written_by_name_and_read_back() -> None:
    assert encode([NIC, GPU]) == TEXT
    assert decode(TEXT) == (GPU, NIC)
    assert decode(encode([])) == ()


BAD = ["", "{", "null", '{"name": "x"}', '[{"goneSince": "x"}]', '["x"]', '"\\ud800"', "\ud800"]
DEEP = f'[{{"name": "x", "goneSince": "y", "z": {"[" * 5_000}{"]" * 5_000}}}]'
LONG = f'[{{"name": "x", "goneSince": "{"y" * MAX_TEXT}"}}]'


@pytest.mark.parametrize("text", [*BAD, DEEP, LONG])
def test_an_invalid_annotation_counts_as_missing(text: str) -> None:
    assert decode(text) == ()
    assert gone_drivers(node(text)) == frozenset()


def test_only_drivers_that_are_gone_are_gone() -> None:
    assert gone_drivers(node(TEXT)) == {"gpu.example.com"}
    assert gone_drivers(node(None)) == gone_drivers(None) == frozenset()


def test_only_devices_of_the_node_alone_go_with_its_driver() -> None:
    mine = slice_of("gpu.example.com", {"nodeName": "n1"})
    assert is_of_gone_driver(mine, node(TEXT))
    assert not is_of_gone_driver(mine, node(None)) and not is_of_gone_driver(mine, None)
    assert not is_of_gone_driver(mine, node(TEXT, "n2"))
    assert not is_of_gone_driver(slice_of("nic.example.com", {"nodeName": "n1"}), node(TEXT))
    assert not is_of_gone_driver(slice_of("gpu.example.com", {"allNodes": True}), node(TEXT))
