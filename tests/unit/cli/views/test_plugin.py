import re
from typing import TYPE_CHECKING, Any

import pytest

from devlet.cli.views.plugin import state

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

VIEWS = "/apis/devlet.dev/v1alpha1"
GPU = "gpu.example.com/gpu"
PLUGIN: dict[str, Any] = {
    "kind": "Plugin",
    "spec": {
        "resource": GPU,
        "socket": "/r/device-plugins/gpu.sock",
        "api": "v1beta1",
        "options": {"preStart": True, "preferredAllocation": False},
    },
    "status": {
        "state": "Connected",
        "since": "2026-01-02T03:04:05Z",
        "healthy": 2,
        "unhealthy": 1,
        "held": 1,
        "pid": 77,
        "message": "it hung up",
    },
}


def put_device(api: "API", id: str, status: dict[str, Any]) -> None:
    spec = {"resource": GPU, "id": id, "numaNodes": [1]}
    api.put(f"{VIEWS}/devices/{GPU.replace('/', ':')}:{id}", {"spec": spec, "status": status})


def described(run: "Run") -> list[str]:
    assert run("describe", "plugin", GPU) == 0, run.err
    return re.sub(r"\(\w+ ago\)", "(… ago)", run.out).splitlines()[4:]


def test_a_plugin_shows_how_it_is_and_its_devices(run: "Run", api: "API") -> None:
    api.put(f"{VIEWS}/plugins/p", PLUGIN)
    holder = {"namespace": "team", "pod": "train", "container": "main"}
    put_device(api, "gpu-10", {"health": "Healthy", "state": "Held", "holder": holder})
    put_device(api, "gpu-2", {"health": "Unhealthy", "state": "Free"})
    api.put(f"{VIEWS}/devices/x:y:z", {"spec": {"resource": "x/y", "id": "z"}})
    assert described(run) == [
        "Resource:     gpu.example.com/gpu",
        "Socket:       /r/device-plugins/gpu.sock",
        "API:          v1beta1",
        "Process:      77",
        "Options:      preStart",
        "State:        Connected",
        "Since:        2026-01-02T03:04:05Z (… ago)",
        "Last error:   it hung up",
        "Devices:      2 healthy, 1 unhealthy, 1 held",
        "List:",
        "  ID       HEALTH      NUMA   STATE   HOLDER       CONTAINER   SINCE",
        "  gpu-2    Unhealthy   1      Free    <none>       <none>      <none>",
        "  gpu-10   Healthy     1      Held    team/train   main        <none>",
    ]


def test_of_many_devices_some_are_shown_and_the_rest_counted(run: "Run", api: "API") -> None:
    api.put(f"{VIEWS}/plugins/p", PLUGIN)
    for number in range(60):
        put_device(api, f"gpu-{number}", {"health": "Healthy", "state": "Free"})
    lines = described(run)
    assert lines[-2].split()[0] == "gpu-49"
    assert lines[-1] == "  and 10 more: devlet get devices gpu.example.com/gpu"


@pytest.mark.parametrize("word", ["Silent", "Disconnected", "Standby", "Awaited"])
def test_a_state_that_needs_words_has_them(word: str) -> None:
    assert state({"status": {"state": word}}).startswith(f"{word}: ")


def test_other_states_speak_for_themselves() -> None:
    assert state({"status": {"state": "Connected"}}) == "Connected"
