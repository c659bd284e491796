from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from devlet.cli.views.slice import COLUMNS, Holder, cells, holders, node

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run


DEVICE = {
    "name": "gpu-0",
    "attributes": {"model": {"string": "A"}, "fast": {"bool": True}},
    "capacity": {"memory": {"value": "8Gi"}},
    "taints": [{"key": "hot", "value": "very", "effect": "NoSchedule"}],
}
SLICE: dict[str, Any] = {
    "kind": "ResourceSlice",
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 3, "resourceSliceCount": 1},
        "devices": [DEVICE, {"name": "gpu-1", "basic": {"attributes": {"model": {"string": "B"}}}}],
    },
}
RESULT = {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
USER = {"resource": "pods", "name": "train", "uid": "u1"}
CLAIM = {"status": {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": [USER]}}


def test_a_slice_shows_its_devices_and_their_holders(run: "Run", api: "API") -> None:
    api.put("/apis/resource.k8s.io/v1/resourceslices/s", SLICE)
    api.put("/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/c", CLAIM)
    assert run("describe", "resourceslice/s", "--show-events=false") == 0, run.err
    assert run.out.splitlines()[5:] == [
        "Driver:       gpu.example.com",
        "Pool:         n1 (generation 3, slices: 1)",
        "Node:         n1",
        "Used:         1 of 2",
        "Devices:",
        "  NAME    CLAIMS   USED BY   ATTRIBUTES           CAPACITY     TAINTS",
        "  gpu-0   team/c   train     fast=true, model=A   memory=8Gi   hot=very:NoSchedule",
        "  gpu-1   <none>   <none>    model=B              <none>       <none>",
    ]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"nodeName": "n1"}, "n1"),
        ({"allNodes": True}, "all"),
        ({"nodeSelector": {}}, "by selector"),
        ({"perDeviceNodeSelection": True}, "per device"),
    ],
)
def test_where_the_devices_are(spec: dict[str, Any], text: str) -> None:
    assert node({"spec": spec}) == text


def test_a_device_may_have_several_holders() -> None:
    claims = [CLAIM | {"metadata": {"namespace": "x", "name": name}} for name in ("a", "b")]
    assert holders(claims) == {("gpu.example.com", "n1", "gpu-0"): [("x/a", ["train"]), ("x/b", ["train"])]}


def test_who_looks_on_with_admin_access_holds_nothing() -> None:
    looks = {"status": {"allocation": {"devices": {"results": [RESULT | {"adminAccess": True}]}}}}
    assert holders([looks]) == {}


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ROW_SLICE: dict[str, Any] = {
    "metadata": {"name": "s", "creationTimestamp": "2026-01-02T03:04:00Z"},
    "spec": {
        "driver": "a",
        "nodeName": "n",
        "pool": {"name": "p", "generation": 7},
        "devices": [{"name": "d0"}, {"name": "d1"}, {"name": "d2"}],
    },
}


def test_devices_in_use_are_counted_once_however_many_share_them() -> None:
    held = {("a", "p", "d0"): [Holder("x/c", []), Holder("x/d", [])], ("a", "other", "d1"): [Holder("x/e", [])]}
    assert cells(ROW_SLICE, held, now=NOW) == ["s", "n", "a", "p", "7", "3", "1", "5s", "x/c,x/d"]
    assert len(COLUMNS) == 9


def test_who_uses_them_may_be_unknown() -> None:
    assert cells(ROW_SLICE, None, now=NOW)[6:] == ["<unknown>", "5s", "<unknown>"]
    assert cells(ROW_SLICE, {}, now=NOW)[6:] == ["0", "5s", "<none>"]
