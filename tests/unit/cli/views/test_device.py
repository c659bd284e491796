import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

VIEWS = "/apis/devlet.dev/v1alpha1"
NAME = "gpu.example.com:gpu:gpu-0"
HELD: dict[str, Any] = {
    "kind": "Device",
    "spec": {"resource": "gpu.example.com/gpu", "id": "gpu-0", "numaNodes": [0, 1]},
    "status": {
        "health": "Healthy",
        "state": "Held",
        "holder": {"namespace": "team", "pod": "train", "podUID": "u1", "container": "main"},
        "since": "2026-01-02T03:04:05Z",
    },
}
HOLDER: dict[str, Any] = {
    "kind": "Holder",
    "status": {
        "phase": "Running",
        "containers": [
            {"name": "other", "options": {"env": {"NOT": "mine"}}},
            {
                "name": "main",
                "options": {"env": {"GPU": "gpu-0"}, "cdiDevices": ["gpu.example.com/gpu=gpu-0"]},
                "oci": {"process": {"env": ["GPU=gpu-0", "FROM_CDI=1"]}},
            },
        ],
    },
}
PLUGIN: dict[str, Any] = {
    "kind": "Plugin",
    "spec": {"resource": "gpu.example.com/gpu", "socket": "/r/gpu.sock"},
    "status": {"state": "Connected"},
}


def described(run: "Run") -> list[str]:
    assert run("describe", "device", "gpu-0") == 0, run.err
    return re.sub(r"\(\w+ ago\)", "(… ago)", run.out).splitlines()[4:]


def test_a_held_device_shows_its_holder_and_what_the_container_got(run: "Run", api: "API") -> None:
    api.put(f"{VIEWS}/devices/{NAME}", HELD)
    api.put(f"{VIEWS}/namespaces/team/holders/train", HOLDER)
    api.put(f"{VIEWS}/plugins/p", PLUGIN)
    api.put(f"{VIEWS}/plugins/q", {"spec": {"resource": "other.example.com/x"}})
    assert described(run) == [
        "Resource:     gpu.example.com/gpu",
        "ID:           gpu-0",
        "Health:       Healthy",
        "NUMA nodes:   0, 1",
        "Plugin:       /r/gpu.sock (Connected)",
        "State:        Held",
        "Pod:          team/train (Running)",
        "Pod UID:      u1",
        "Container:    main",
        "Since:        2026-01-02T03:04:05Z (… ago)",
        "Given to the container:",
        "  Environment:",
        "    GPU=gpu-0",
        "    FROM_CDI=1",
        "  CDI devices:",
        "    gpu.example.com/gpu=gpu-0",
    ]


def test_a_free_device_has_no_holder(run: "Run", api: "API") -> None:
    spec = {"resource": "gpu.example.com/gpu", "id": "gpu-0", "numaNodes": []}
    api.put(
        f"{VIEWS}/devices/{NAME}", {"kind": "Device", "spec": spec, "status": {"health": "Unhealthy", "state": "Free"}}
    )
    assert described(run) == [
        "Resource:     gpu.example.com/gpu",
        "ID:           gpu-0",
        "Health:       Unhealthy",
        "NUMA nodes:   <none>",
        "Plugin:       none: no plugin serves the resource now",
        "State:        Free",
    ]


def test_a_device_whose_plugin_and_pod_are_gone_says_so(run: "Run", api: "API") -> None:
    status = {"health": "Unknown", "state": "Held", "holder": {"podUID": "u1", "container": "main"}}
    api.put(f"{VIEWS}/devices/{NAME}", HELD | {"status": status})
    lines = described(run)
    assert "Health:       Unknown: its plugin does not list the device" in lines
    assert lines[-4:] == [
        "Pod:          no longer in the cluster",
        "Pod UID:      u1",
        "Container:    main",
        "Since:        before devlet started",
    ]


def test_a_contested_device_of_a_driver_names_the_claims(run: "Run", api: "API") -> None:
    contested = {
        "kind": "Device",
        "spec": {"driver": "gpu.example.com", "pool": "n1", "id": "gpu-0"},
        "status": {
            "state": "Contested",
            "claims": ["ns/a"],
            "waiting": ["ns/b", "ns/c"],
            "since": "2026-01-02T03:04:05Z",
        },
    }
    api.put(f"{VIEWS}/devices/gpu.example.com:n1:gpu-0", contested)
    assert run("describe", "device", "gpu.example.com:n1:gpu-0") == 0, run.err
    found = re.sub(r"\(\w+ ago\)", "(… ago)", run.out).splitlines()
    assert found[-7:] == [
        "Driver:       gpu.example.com",
        "Pool:         n1",
        "Device:       gpu-0",
        "State:        Contested",
        "Prepared for: claim ns/a",
        "Wanted by:    claim ns/b, claim ns/c",
        "Since:        2026-01-02T03:04:05Z (… ago)",
    ]
