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
        "Devices:",
        "  DRIVER            POOL   DEVICES",
        "  gpu.example.com   n1     gpu-0, gpu-1, gpu-2, gpu-3, gpu-4, gpu-5, gpu-6, gpu-7 and 2 more",
        "Pods:",
        "  NAMESPACE   NAME   STATUS",
        "  team        p      Running",
    ]
