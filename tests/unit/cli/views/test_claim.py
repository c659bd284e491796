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


def test_a_claim_shows_what_it_wants_what_it_has_and_who_uses_it(run: "Run", api: "API") -> None:
    api.put("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c", CLAIM)
    assert run("describe", "resourceclaim", "c", "--show-events=false") == 0, run.err
    assert run.out.splitlines()[6:] == [
        "State:        allocated,reserved",
        "Nodes:        n1",
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
