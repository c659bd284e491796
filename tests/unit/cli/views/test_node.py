from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

NODE: dict[str, Any] = {
    "kind": "Node",
    "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoExecute"}], "unschedulable": True},
    "status": {
        "nodeInfo": {"kubeletVersion": "v1.36.4"},
        "addresses": [{"type": "Hostname", "address": "n1"}],
        "capacity": {"x/gpu": "2", "cpu": "4"},
        "allocatable": {"x/gpu": "1"},
    },
}


def test_a_node_shows_its_devices_and_pods(run: "Run", api: "API") -> None:
    api.put("/api/v1/nodes/n1", NODE)
    for name, node in (("p", "n1"), ("elsewhere", "n2")):
        api.put(f"/api/v1/namespaces/team/pods/{name}", {"spec": {"nodeName": node}, "status": {"phase": "Running"}})
    devices = [{"name": f"gpu-{i}"} for i in range(10)]
    spec = {"driver": "gpu.example.com", "nodeName": "n1", "pool": {"name": "n1"}, "devices": devices}
    api.put("/apis/resource.k8s.io/v1/resourceslices/s", {"spec": spec})
    assert run("describe", "node", "n1", "--show-events=false") == 0, run.err
    assert run.out.splitlines()[5:] == [
        "Version:      v1.36.4",
        "Addresses:    Hostname n1",
        "Taints:       k=v:NoExecute",
        "Unschedulable: true",
        "Conditions:   <none>",
        "Resources:",
        "  NAME    CAPACITY   ALLOCATABLE",
        "  cpu     4          <none>",
        "  x/gpu   2          1",
        "Devices of slices:",
        "  DRIVER            POOL   DEVICES",
        "  gpu.example.com   n1     gpu-0, gpu-1, gpu-2, gpu-3, gpu-4, gpu-5, gpu-6, gpu-7 and 2 more",
        "Pods:",
        "  NAMESPACE   NAME   STATUS",
        "  team        p      Running",
    ]


PLUGIN: dict[str, Any] = {"spec": {"resource": "x/gpu"}, "status": {"state": "Connected", "held": 1}}
VIEWS = "/apis/devlet.dev/v1alpha1"


def test_a_node_with_plugins_shows_what_is_held_and_how_they_are(run: "Run", api: "API") -> None:
    api.put("/api/v1/nodes/n1", NODE)
    api.put(f"{VIEWS}/plugins/x:gpu", PLUGIN)
    api.put(f"{VIEWS}/plugins/x:gpu~2", PLUGIN | {"status": {"state": "Standby"}})
    api.put(f"{VIEWS}/plugins/x:nic", {"spec": {"resource": "x/nic"}, "status": {"state": "Awaited", "held": 0}})
    assert run("describe", "node", "n1", "--show-events=false") == 0, run.err
    table = run.out[run.out.index("Resources:") : run.out.index("Devices of slices:")]
    assert table.splitlines()[1:] == [
        "  NAME    CAPACITY   ALLOCATABLE   HELD     PLUGIN",
        "  cpu     4          <none>        <none>   <none>",
        "  x/gpu   2          1             1        Connected",
        "  x/nic   <none>     <none>        0        Awaited",
    ]


def test_with_several_nodes_it_is_not_known_whose_the_plugins_are(run: "Run", api: "API") -> None:
    for name in ("n1", "n2"):
        api.put(f"/api/v1/nodes/{name}", NODE)
    api.put(f"{VIEWS}/plugins/x:gpu", PLUGIN)
    assert run("describe", "node", "n2") == 0, run.err
    assert "HELD" not in run.out


def test_a_damaged_checkpoint_is_shown_first_with_the_next_step(run: "Run", api: "API") -> None:
    files = ["/r/device-plugins/c.damaged-1", "/r/device-plugins/c.damaged-2"]
    message = "; ".join(f"{file} was damaged and set aside" for file in files)
    condition = {"type": "DeviceCheckpointDamaged", "status": "True", "message": message}
    api.put("/api/v1/nodes/n1", NODE | {"status": {"conditions": [condition]}})
    assert run("describe", "node", "n1") == 0, run.err
    assert run.out.splitlines()[5:9] == [
        "DAMAGE:       /r/device-plugins/c.damaged-1 was damaged and set aside",
        "              /r/device-plugins/c.damaged-2 was damaged and set aside",
        "Next step:    stop devlet; devlet checkpoint repair /r/device-plugins/c.damaged-1"
        " --output /r/device-plugins/c --force; move /r/device-plugins/c.damaged-1 away",
        "              stop devlet; devlet checkpoint repair /r/device-plugins/c.damaged-2"
        " --output /r/device-plugins/c --force; move /r/device-plugins/c.damaged-2 away",
    ]
