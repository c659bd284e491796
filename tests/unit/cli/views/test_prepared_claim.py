import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

VIEWS = "/apis/devlet.dev/v1alpha1"
SINCE = "2026-01-02T03:04:05Z"
DEVICES = [
    {"pool": "n1", "device": "gpu-0", "shareID": "s1", "requests": ["a", "b"], "cdiDevices": ["x/y=0", "x/y=1"]},
    {"pool": "n1", "device": "gpu-1"},
]
VIEW: dict[str, Any] = {
    "kind": "PreparedClaim",
    "spec": {"uid": "u1"},
    "status": {
        "state": "Failed",
        "since": SINCE,
        "message": "nic.example.com: too hot",
        "drivers": [
            {"driver": "gpu.example.com", "prepared": True, "devices": DEVICES},
            {"driver": "nic.example.com", "prepared": False},
        ],
        "pods": [{"name": "train", "uid": "p1"}, {"uid": "p2"}],
        "waiting": [{"pod": "train", "uid": "p1", "since": SINCE, "message": "too hot"}],
    },
}


def test_what_each_driver_has_prepared_is_shown_with_users_and_waiting_pods(run: "Run", api: "API") -> None:
    api.put(f"{VIEWS}/namespaces/default/preparedclaims/c", VIEW)
    driver = {"spec": {"driver": "nic.example.com"}, "status": {"state": "Connected"}}
    api.put(f"{VIEWS}/drivers/nic.example.com", driver)
    assert run("describe", "pclaims", "c") == 0, run.err
    lines = re.sub(r"\(\w+ ago\)", "(… ago)", run.out).splitlines()
    assert [re.sub(" {3,}", "   ", line).rstrip() if "SINCE" in line else line for line in lines[5:]] == [
        "Claim UID:    u1",
        "Claim:        not in the cluster",
        "Prepared:     Failed, since 2026-01-02T03:04:05Z (… ago)",
        "Awaits:       nic.example.com: too hot, since 2026-01-02T03:04:05Z (… ago)",
        "Last error:   nic.example.com: too hot",
        "On this node:",
        "  DRIVER            PREPARED         DEVICE                REQUESTS   CDI DEVICES",
        "  gpu.example.com   yes              n1/gpu-0 (share s1)   a, b       x/y=0, x/y=1",
        "  gpu.example.com   yes              n1/gpu-1              all        <none>",
        "  nic.example.com   no (Connected)   <none>                <none>     <none>",
        "Pods:",
        "  NAME     UID",
        "  train    p1",
        "  <none>   p2",
        "Waiting:",
        "  POD   UID   SINCE   MESSAGE",
        "  train   p1    2026-01-02T03:04:05Z (… ago)   too hot",
    ]


def test_a_claim_of_the_same_name_is_not_taken_for_it(run: "Run", api: "API") -> None:
    api.put(f"{VIEWS}/namespaces/default/preparedclaims/c", VIEW)
    api.put("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c", {"metadata": {"uid": "another"}})
    assert run("describe", "preparedclaim", "c") == 0, run.err
    assert "Claim:        not in the cluster" in run.out
    api.put("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c", {"metadata": {"uid": "u1"}})
    assert run("describe", "preparedclaim", "c") == 0, run.err
    assert "Claim:        in the cluster" in run.out
