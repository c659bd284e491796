from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

RESULT = {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
POD: dict[str, Any] = {
    "kind": "Pod",
    "spec": {
        "nodeName": "n1",
        "containers": [
            {
                "name": "c",
                "image": "i",
                "resources": {"limits": {"x/gpu": "1", "cpu": "2"}, "claims": [{"name": "gpu", "request": "r"}]},
            }
        ],
        "initContainers": [{"name": "first", "image": "i"}],
        "resourceClaims": [
            {"name": "gpu", "resourceClaimName": "c"},
            {"name": "made", "resourceClaimTemplateName": "t"},
            {"name": "gone", "resourceClaimName": "nope"},
        ],
    },
    "status": {
        "phase": "Failed",
        "reason": "UnexpectedAdmissionError",
        "message": "no devices",
        "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "Pulling"}}, "restartCount": 2}],
        "conditions": [{"type": "Ready", "status": "False"}],
    },
}


def test_a_pod_shows_which_devices_its_claims_gave_it(run: "Run", api: "API") -> None:
    api.put("/api/v1/namespaces/default/pods/p", POD)
    claim = {"status": {"allocation": {"devices": {"results": [RESULT]}}}}
    api.put("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c", claim)
    assert run("describe", "pod", "p", "--show-events=false") == 0, run.err
    assert run.out.splitlines()[6:] == [
        "Node:         n1",
        "Status:       Failed: UnexpectedAdmissionError",
        "Message:      no devices",
        "IP:           <none>",
        "Init containers:",
        "  NAME    IMAGE   STATE    RESTARTS   LIMITS   CLAIMS",
        "  first   i       <none>   0          <none>   <none>",
        "Containers:",
        "  NAME   IMAGE   STATE               RESTARTS   LIMITS           CLAIMS",
        "  c      i       waiting (Pulling)   2          cpu=2, x/gpu=1   gpu/r",
        "Claims:",
        "  NAME   CLAIM             STATE         DEVICES",
        "  gpu    c                 allocated     gpu.example.com/n1/gpu-0",
        "  made   from template t   not created   <none>",
        "  gone   nope              not found     <none>",
        "Conditions:",
        "  TYPE    STATUS   REASON   MESSAGE",
        "  Ready   False    <none>   <none>",
    ]


def test_a_pod_shows_the_devices_that_it_has_from_plugins(run: "Run", api: "API") -> None:
    devices = [{"resourceID": "gpu-0", "health": "Healthy"}, {"resourceID": "gpu-1", "health": "Unhealthy"}]
    status = {"name": "c", "allocatedResourcesStatus": [{"name": "x/gpu", "resources": devices}]}
    api.put("/api/v1/namespaces/default/pods/p", POD | {"status": {"containerStatuses": [status]}})
    assert run("describe", "pod", "p") == 0, run.err
    assert "Devices:\n  CONTAINER   RESOURCE   DEVICES\n  c           x/gpu      gpu-0, gpu-1 (Unhealthy)\n" in run.out


def test_a_pod_shows_what_its_containers_got_with_their_devices(run: "Run", api: "API") -> None:
    given = {"name": "c", "oci": {"process": {"env": ["GPU=0"]}}, "claims": [{"cdiDevices": ["example.com/gpu=0"]}]}
    api.put("/api/v1/namespaces/default/pods/p", {**POD, "metadata": {"name": "p", "namespace": "default"}})
    holder = {"kind": "Holder", "status": {"containers": [{"name": "first"}, given]}}
    api.put("/apis/devlet.dev/v1alpha1/namespaces/default/holders/p", holder)
    assert run("describe", "pod", "p") == 0, run.err
    expected = "Given to container c:\n  Environment:\n    GPU=0\n  CDI devices:\n    example.com/gpu=0\nConditions:\n"
    assert expected in run.out
    assert "container first" not in run.out
