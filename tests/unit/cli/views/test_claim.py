from typing import TYPE_CHECKING, Any

import pytest

from devlet.cli.views.claim import devices, nodes, state

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
ON_N1 = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
REQUESTS = [
    {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
    {"name": "all", "exactly": {"deviceClassName": "nic", "allocationMode": "All"}},
    {
        "name": "any",
        "firstAvailable": [{"name": "big", "deviceClassName": "gpu"}, {"name": "small", "deviceClassName": "gpu"}],
    },
]
CLAIM: dict[str, Any] = {
    "kind": "ResourceClaim",
    "spec": {"devices": {"requests": REQUESTS}},
    "status": {
        "allocation": {"devices": {"results": [RESULT]}, "nodeSelector": ON_N1},
        "reservedFor": [{"resource": "pods", "name": "train", "uid": "u1"}],
    },
}


def test_a_claim_shows_its_requests_devices_and_consumers(run: "Run", api: "API") -> None:
    api.put("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c", CLAIM)
    assert run("describe", "resourceclaim", "c", "--show-events=false") == 0, run.err
    assert run.out.splitlines()[6:] == [
        "State:        allocated,reserved",
        "Nodes:        n1",
        "Prepared:     not on this node",
        "Awaits:       <none>",
        "Requests:",
        "  NAME   CLASS                      COUNT             CAPACITY",
        "  gpu    gpu                        2                 <none>",
        "  all    nic                        all               <none>",
        "  any    big (gpu) or small (gpu)   first available   <none>",
        "Devices:",
        "  REQUEST   DRIVER            POOL   DEVICE",
        "  gpu       gpu.example.com   n1     gpu-0",
        "Used by:",
        "  RESOURCE   NAME    UID",
        "  pods       train   u1",
    ]


@pytest.mark.parametrize(
    ("claim", "word"),
    [
        ({}, "pending"),
        ({"status": {"allocation": {}}}, "allocated"),
        (CLAIM, "allocated,reserved"),
        (CLAIM | {"metadata": {"deletionTimestamp": "x"}}, "deleted,allocated,reserved"),
        ({"metadata": {"deletionTimestamp": "x"}}, "deleted"),
    ],
)
def test_the_state_of_a_claim(claim: dict[str, Any], word: str) -> None:
    assert state(claim) == word


@pytest.mark.parametrize(
    ("allocation", "text"),
    [
        (None, ""),
        ({}, "any"),
        ({"nodeSelector": ON_N1}, "n1"),
        (
            {
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
                    ]
                }
            },
            "zone In a,b",
        ),
    ],
)
def test_where_pods_that_use_it_can_run(allocation: dict[str, Any] | None, text: str) -> None:
    assert nodes({"status": {"allocation": allocation}}) == text


def test_odd_shapes_count_as_absent() -> None:
    assert devices({"status": {"allocation": {"devices": {"results": [1, {"device": 7}]}}}}) == [
        {"request": "", "driver": "", "pool": "", "device": ""}
    ]


def test_what_drivers_say_of_the_devices_is_shown(run: "Run", api: "API") -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Hot", "status": "False"}]
    said = {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0", "conditions": conditions}
    status = CLAIM["status"] | {"devices": [said]}
    api.put("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c", CLAIM | {"status": status})
    assert run("describe", "claim", "c", "--show-events=false") == 0, run.err
    assert run.out.splitlines()[-3:] == [
        "Device status:",
        "  DRIVER            POOL   DEVICE   CONDITIONS",
        "  gpu.example.com   n1     gpu-0    Ready=True, Hot=False",
    ]


def test_a_view_of_another_claim_that_had_the_name_is_not_its_own(run: "Run", api: "API") -> None:
    api.put("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c", CLAIM)
    view = "/apis/devlet.dev/v1alpha1/namespaces/default/preparedclaims/c"
    api.put(view, {"spec": {"uid": "another"}, "status": {"state": "Unpreparing"}})
    assert run("describe", "claim", "c") == 0, run.err
    assert "Prepared:     not on this node" in run.out
    api.put(view, {"spec": {}, "status": {"state": "Waiting"}})
    assert run("describe", "claim", "c") == 0, run.err
    assert "Prepared:     Waiting, since before devlet started" in run.out
