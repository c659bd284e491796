import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

PATH = "/apis/devlet.dev/v1alpha1/namespaces/team/holders/train"
HOLDER: dict[str, Any] = {
    "kind": "Holder",
    "spec": {"podUID": "u1"},
    "status": {
        "phase": "Running",
        "since": "2026-01-02T03:04:05Z",
        "containers": [
            {
                "name": "main",
                "devices": [{"resource": "gpu.example.com/gpu", "ids": ["gpu-10", "gpu-2"]}],
                "options": {"env": {"GPU": "0"}},
            },
            {"name": "second", "devices": []},
        ],
    },
}


def test_a_holder_shows_the_devices_of_each_container(run: "Run", api: "API") -> None:
    api.put(PATH, HOLDER)
    assert run("describe", "holder", "train", "-n", "team") == 0, run.err
    assert re.sub(r"\(\w+ ago\)", "(… ago)", run.out).splitlines()[5:] == [
        "Pod UID:      u1",
        "Phase:        Running",
        "Since:        2026-01-02T03:04:05Z (… ago)",
        "Container main:",
        "  Devices:",
        "    RESOURCE              IDS",
        "    gpu.example.com/gpu   gpu-2, gpu-10",
        "  Environment:",
        "    GPU=0",
        "Container second:",
        "  Devices:      <none>",
    ]


def test_when_it_got_them_may_be_unknown(run: "Run", api: "API") -> None:
    api.put(PATH, {"kind": "Holder", "status": {}})
    assert run("describe", "holder", "train", "-n", "team") == 0, run.err
    assert "Since:        before devlet started\n" in run.out


def test_a_holder_shows_the_claims_of_each_container_and_what_they_give(run: "Run", api: "API") -> None:
    device = {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0", "cdiDevices": ["example.com/gpu=0"]}
    claims = [
        {"name": "gpu", "claim": "train-gpu-x7", "request": "one", "shareID": "s1", **device},
        {"name": "net", "claim": "train-net", "driver": "nic.example.com"},
    ]
    added = {"process": {"env": ["GPU=0"]}}
    containers = [{"name": "main", "claims": claims, "oci": added, "notes": ["odd"]}]
    api.put(PATH, {"kind": "Holder", "spec": {"podUID": "u1"}, "status": {"containers": containers}})
    assert run("describe", "holder", "train", "-n", "team") == 0, run.err
    assert run.out.splitlines()[5:] == [
        "Pod UID:      u1",
        "Phase:        <none>",
        "Container main:",
        "  Claims:",
        "    NAME   CLAIM          REQUEST   DEVICE                           SHARE",
        "    gpu    train-gpu-x7   one       gpu.example.com/n1/gpu-0         s1",
        "    net    train-net      all       nic.example.com (not prepared)   <none>",
        "  Environment:",
        "    GPU=0",
        "  CDI devices:",
        "    example.com/gpu=0",
        "  Notes:",
        "    odd",
    ]
