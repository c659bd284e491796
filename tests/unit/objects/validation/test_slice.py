from typing import Any

import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import slice
from devlet.objects.validation.field_errors import duplicate, invalid, required, too_long, too_many

ONE_NODE_FIELD = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
SPEC: Document = {
    "driver": "gpu.example.com",
    "pool": {"name": "node-1", "generation": 0, "resourceSliceCount": 1},
    "nodeName": "node-1",
}


def devices(count: int, **members: Any) -> list[Document]:
    plain = {"attributes": {"model": {"string": "x"}}, "capacity": {"memory": {"value": "1Gi"}}}
    return [{"name": f"gpu-{i}", **plain, **members} for i in range(count)]


def check(old: Document | None = None, **changes: Any) -> list[Cause]:
    spec = {member: value for member, value in {**SPEC, **changes}.items() if value is not None}
    return list(slice.check({"spec": spec}, None if old is None else {"spec": old}))


def pool(**changes: Any) -> Document:
    return {**SPEC["pool"], **changes}


SELECTOR = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}


@pytest.mark.spec("AL-2.19")
def test_128_devices_are_accepted() -> None:
    assert check(devices=devices(128)) == []


@pytest.mark.parametrize("where", [{"nodeSelector": SELECTOR}, {"allNodes": True}, {"perDeviceNodeSelection": True}])
def test_a_slice_may_be_for_several_nodes(where: Document) -> None:
    assert check(nodeName=None, **where) == []


@pytest.mark.spec("AL-2.17")
@pytest.mark.parametrize(
    ("changes", "causes"),
    [
        ({"nodeName": None}, [required("spec", ONE_NODE_FIELD)]),
        (
            {"allNodes": True},
            [invalid("spec", "{`nodeName`, `allNodes`}", f"{ONE_NODE_FIELD}, but multiple fields are set")],
        ),
        (
            {"nodeSelector": SELECTOR, "perDeviceNodeSelection": True},
            [
                invalid(
                    "spec",
                    "{`nodeName`, `nodeSelector`, `perDeviceNodeSelection`}",
                    f"{ONE_NODE_FIELD}, but multiple fields are set",
                )
            ],
        ),
        ({"allNodes": False}, [invalid("spec.allNodes", False, "must be either unset or set to true")]),
        (
            {"perDeviceNodeSelection": False},
            [invalid("spec.perDeviceNodeSelection", False, "must be either unset or set to true")],
        ),
        (
            {"nodeName": "", "allNodes": True},
            [invalid("spec.nodeName", "", "must be either unset or set to a non-empty string")],
        ),
        ({"nodeName": "A"}, [invalid("spec.nodeName", "A", names.dns_subdomain("A")[0])]),
        (
            {"nodeName": None, "nodeSelector": {}},
            [
                invalid("spec.nodeSelector.nodeSelectorTerms", None, "must have exactly one node selector term"),
                required("spec.nodeSelector.nodeSelectorTerms", "must have at least one node selector term"),
            ],
        ),
    ],
)
def test_a_slice_selects_its_nodes_in_one_way(changes: Document, causes: list[Cause]) -> None:
    assert check(**changes) == causes


@pytest.mark.spec("AL-2.18")
@pytest.mark.spec("KA-7.3.7")
@pytest.mark.parametrize(
    ("changes", "path", "value"),
    [
        ({"driver": "other"}, "spec.driver", "other"),
        ({"pool": pool(name="other")}, "spec.pool.name", "other"),
        ({"nodeName": "other"}, "spec.nodeName", "other"),
        ({"nodeName": None, "allNodes": True}, "spec.nodeName", None),
    ],
)
def test_driver_pool_and_node_stay(changes: Document, path: str, value: str | None) -> None:
    assert check(SPEC, **changes) == [invalid(path, value, "field is immutable")]


@pytest.mark.spec("KA-7.3.7")
def test_everything_else_may_change() -> None:
    changes = {"devices": devices(2), "pool": pool(generation=4, resourceSliceCount=7)}
    assert check({**SPEC, "devices": devices(1)}, **changes) == []


@pytest.mark.spec("AL-2.19")
@pytest.mark.spec("KA-7.4")
def test_there_are_at_most_128_devices() -> None:
    assert check(devices=devices(129)) == [too_many("spec.devices", 129, 128)]


@pytest.mark.spec("AL-2.19")
@pytest.mark.spec("KA-7.4")
@pytest.mark.parametrize(
    "members",
    [
        {"taints": [{"key": "a", "effect": "None"}]},
        {"consumesCounters": [{"counterSet": "c", "counters": {"m": {"value": "1"}}}]},
        {"attributes": {"list": {"strings": ["x"]}}},
    ],
)
def test_one_advanced_device_lowers_the_limit_to_64(members: Document) -> None:
    mixed = [*devices(63), {"name": "special", **members}]
    assert check(devices=mixed) == []
    assert check(devices=[*mixed, {"name": "one-more"}]) == [too_many("spec.devices", 65, 64)]


@pytest.mark.spec("AL-2.19")
def test_a_device_name_is_used_once() -> None:
    assert check(devices=[*devices(2), *devices(1)]) == [duplicate("spec.devices[2]", "gpu-0")]


@pytest.mark.spec("AL-2.20")
def test_a_bad_device_is_named_by_its_index() -> None:
    causes = check(devices=[*devices(1), {"name": "x", "attributes": {"a": {}}}])
    assert [cause.field for cause in causes] == ["spec.devices[1].attributes[a]"]


@pytest.mark.spec("AL-2.24")
def test_the_taints_of_a_stored_device_are_found_by_its_name() -> None:
    tainted = [{"name": "a"}, {"name": "b", "taints": [{"key": "k"}]}]
    assert check({**SPEC, "devices": tainted}, devices=tainted[::-1]) == []
    assert check(SPEC, devices=tainted) == [required("spec.devices[1].taints[0].effect")]


@pytest.mark.spec("AL-2.26")
def test_a_slice_has_devices_or_counters() -> None:
    shared = [{"name": "set", "counters": {"m": {"value": "1"}}}]
    assert check(sharedCounters=shared) == []
    expected = invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    assert check(sharedCounters=shared, devices=devices(1)) == [expected]
    assert check(sharedCounters=[{"name": "set"}]) == [required("spec.sharedCounters[0].counters")]


@pytest.mark.spec("KA-7.4")
@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"driver": ""}, required("spec.driver")),
        ({"driver": "d" * 64}, too_long("spec.driver", 63)),
        ({"driver": "a_b"}, invalid("spec.driver", "a_b", names.dns_subdomain("a_b")[0])),
        ({"pool": pool(name="")}, required("spec.pool.name")),
        ({"pool": pool(name="A")}, invalid("spec.pool.name", "A", names.dns_subdomain("A")[0])),
        (
            {"pool": pool(generation=-1)},
            invalid("spec.pool.generation", -1, "must be greater than or equal to zero"),
        ),
        ({"pool": pool(resourceSliceCount=0)}, invalid("spec.pool.resourceSliceCount", 0, "must be greater than zero")),
    ],
)
def test_driver_and_pool_are_named_and_counted(changes: Document, cause: Cause) -> None:
    assert check(**changes) == [cause]


def test_an_upper_case_driver_is_accepted_with_a_warning() -> None:
    assert check(driver="GPU.example.com") == []
    assert slice.warnings({"spec": {**SPEC, "driver": "GPU.example.com"}}) == [
        'spec.driver: driver names should be lowercase; "GPU.example.com" contains uppercase characters'
    ]
    assert slice.warnings({"spec": SPEC}) == []
