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
    assert "Since:        before devlet was started\n" in run.out
