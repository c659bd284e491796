from typing import Any

import pytest

from devlet.objects.patches.topology import UNTYPED, Division, Topology, of
from devlet.objects.schema.messages import Field, Message, message_of


def at(kind: str, *path: str) -> Topology:
    api_version, _, name = kind.rpartition("/")
    topology = of(message_of(api_version, name))
    for step in path:
        below = topology.element if step == "*" else topology.child(step)
        assert below is not None
        topology = below
    return topology


CLAIM = "resource.k8s.io/v1/ResourceClaim"
SLICE = "resource.k8s.io/v1/ResourceSlice"


@pytest.mark.parametrize(
    ("kind", "path", "division", "keys"),
    [
        ("v1/ConfigMap", ("data",), Division.MAP, ()),
        ("v1/Pod", ("metadata",), Division.STRUCT, ()),
        ("v1/Pod", ("metadata", "finalizers"), Division.SET, ()),
        ("v1/Pod", ("metadata", "ownerReferences"), Division.KEYED, ("uid",)),
        ("v1/Pod", ("metadata", "ownerReferences", "*"), Division.ATOMIC, ()),
        ("v1/Pod", ("metadata", "creationTimestamp"), Division.ATOMIC, ()),
        ("v1/Pod", ("spec", "nodeSelector"), Division.ATOMIC, ()),
        ("v1/Pod", ("spec", "tolerations"), Division.ATOMIC, ()),
        ("v1/Pod", ("spec", "containers"), Division.KEYED, ("name",)),
        ("v1/Pod", ("spec", "containers", "*", "ports"), Division.KEYED, ("containerPort", "protocol")),
        ("v1/Pod", ("spec", "containers", "*", "resources", "limits"), Division.MAP, ()),
        ("v1/PersistentVolume", ("spec", "claimRef"), Division.STRUCT, ()),
        ("v1/Event", ("involvedObject",), Division.ATOMIC, ()),
        (CLAIM, ("status", "devices"), Division.KEYED, ("driver", "device", "pool", "shareID")),
        (CLAIM, ("status", "devices", "*", "data"), Division.UNTYPED, ()),
        (SLICE, ("spec", "devices"), Division.ATOMIC, ()),
    ],
)
def test_the_schema_determines_how_a_value_is_divided(
    kind: str, path: tuple[str, ...], division: Division, keys: tuple[str, ...]
) -> None:
    topology = at(kind, *path)
    assert (topology.division, topology.keys) == (division, keys)


def test_a_list_without_a_type_goes_by_its_patch_strategy() -> None:
    untyped = Field(1, "k8s.io.api.core.v1.HostIP", "ips", "repeated", patch_strategy=("merge",), patch_merge_key="ip")
    topology = of(Message("X", (untyped, Field(2, "string", "names", "repeated", patch_strategy=("merge",)))))
    ips, names = topology.child("ips"), topology.child("names")
    assert ips is not None
    assert names is not None
    assert (ips.division, ips.keys, names.division) == (Division.KEYED, ("ip",), Division.SET)


def test_a_kind_has_no_fields_but_its_own() -> None:
    assert at("v1/Pod", "spec").child("containerz") is None
    assert not at("v1/Pod", "spec").is_field("containerz")
    assert at("v1/Pod", "spec").is_field("containers")


def test_an_unknown_kind_is_untyped_except_for_its_metadata() -> None:
    root = of(None)
    assert root.child("spec") is UNTYPED
    metadata = root.child("metadata")
    assert metadata is not None
    finalizers = metadata.child("finalizers")
    assert finalizers is not None
    assert finalizers.division is Division.SET


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ({"containerPort": 80, "protocol": "UDP"}, 'k:{"containerPort":80,"protocol":"UDP"}'),
        ({"containerPort": 80, "name": "web"}, 'k:{"containerPort":80,"protocol":"TCP"}'),
        ("odd", None),
    ],
)
def test_an_element_is_named_by_its_keys_sorted_with_the_protocol_defaulting_to_tcp(item: Any, name: str) -> None:
    assert at("v1/Pod", "spec", "containers", "*", "ports").name(item) == name


def test_an_optional_key_may_be_absent_but_not_all_of_them() -> None:
    devices = at(CLAIM, "status", "devices")
    named = devices.name({"driver": "d", "pool": "p", "device": "x"})
    assert named == 'k:{"device":"x","driver":"d","pool":"p"}'
    assert devices.name({"conditions": []}) is None


def test_a_list_whose_elements_cannot_be_identified_is_one_piece() -> None:
    containers = at("v1/Pod", "spec", "containers")
    assert containers.split([{"name": "a"}, {"name": "a"}]) is None
    assert containers.split([{"image": "i"}]) is None
    assert list(containers.split([{"name": "a"}, {"name": "b"}]) or ()) == ['k:{"name":"a"}', 'k:{"name":"b"}']


def test_untyped_values_end_in_one_piece_at_some_depth() -> None:
    topology = UNTYPED
    for _ in range(64):
        topology = topology.element
    assert topology.division is Division.ATOMIC
    assert topology.split({"a": 1}) is None
