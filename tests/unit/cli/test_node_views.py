import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

VIEWS = "/apis/devlet.dev/v1alpha1"
GPU, NIC = "gpu.example.com/gpu", "nic.example.com/nic"


def device(resource: str, id: str) -> dict[str, Any]:
    return {"apiVersion": "devlet.dev/v1alpha1", "kind": "Device", "spec": {"resource": resource, "id": id}}


def put_device(api: "API", resource: str, id: str) -> None:
    name = f"{resource}:{id}".replace("/", ":")
    api.put(f"{VIEWS}/devices/{name}", device(resource, id))


@pytest.fixture(autouse=True)
def devices(api: "API") -> None:
    for id in ("gpu-10", "gpu-2", "gpu-1"):
        put_device(api, GPU, id)
    put_device(api, NIC, "gpu-2")
    put_device(api, NIC, "0000:3b:00.0")


def listed(run: "Run") -> list[str]:
    return [line.split()[0].removeprefix("device.devlet.dev/") for line in run.out.splitlines() if ":" in line]


ALL = [
    "gpu.example.com:gpu:gpu-1",
    "gpu.example.com:gpu:gpu-2",
    "gpu.example.com:gpu:gpu-10",
    "nic.example.com:nic:0000:3b:00.0",
    "nic.example.com:nic:gpu-2",
]


@pytest.mark.parametrize("output", [[], ["-o", "wide"], ["-o", "name"]])
def test_devices_come_by_resource_and_then_as_people_count(run: "Run", output: list[str]) -> None:
    assert run("get", "devices", *output) == 0, run.err
    assert listed(run) == ALL


def test_one_request_is_enough_to_list_them(run: "Run", api: "API") -> None:
    run("get", "devices")
    assert [path for _, path, _ in api.requests] == [f"{VIEWS}/devices?limit=500"]


def test_an_order_that_is_asked_for_wins(run: "Run") -> None:
    assert run("get", "devices", "-o", "name", "--sort-by=.spec.id") == 0, run.err
    assert listed(run)[0] == "nic.example.com:nic:0000:3b:00.0"
    assert listed(run)[1:3] == ["gpu.example.com:gpu:gpu-1", "gpu.example.com:gpu:gpu-10"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gpu-1", ALL[:1]),
        ("gpu-2", [ALL[1], ALL[4]]),
        ("0000:3b:00.0", ALL[3:4]),
        ("gpu.example.com:gpu:gpu-10", ALL[2:3]),
        ("gpu.example.com/gpu", ALL[:3]),
        ("nic.example.com/nic/gpu-2", ALL[4:]),
    ],
)
def test_a_device_is_found_by_what_people_call_it(run: "Run", text: str, found: list[str]) -> None:
    assert run("get", "device", text, "-o", "name") == 0, run.err
    assert listed(run) == found
    assert run("describe", "device", text) == 0, run.err
    assert run.out.count("Kind:         Device") == len(found)


def test_a_single_device_is_one_document(run: "Run") -> None:
    assert run("get", "device/gpu-1", "-o", "jsonpath={.spec.resource}") == 0, run.err
    assert run.out == GPU


def test_a_device_that_two_words_mean_is_shown_once(run: "Run") -> None:
    assert run("get", "devices", "gpu-1", ALL[0], "-o", "name") == 0, run.err
    assert listed(run) == ALL[:1]


@pytest.mark.parametrize("text", ["gpu-7", "gpu.example.com/nothing", "100%"])
def test_an_unknown_name_is_not_found(run: "Run", text: str) -> None:
    assert run("get", "devices", text) == 1
    assert text in run.err


def test_an_id_that_the_server_finds_too_often_is_looked_up_here(run: "Run", api: "API") -> None:
    many = {"kind": "Status", "code": 400, "reason": "BadRequest", "message": "2 devices have the id"}
    api.answers["GET", f"{VIEWS}/devices/gpu-2"] = (400, many)
    assert run("get", "devices", "gpu-2", "-o", "name") == 0, run.err
    assert listed(run) == [ALL[1], ALL[4]]


def test_a_plugin_is_found_by_its_resource_and_by_its_socket(run: "Run", api: "API") -> None:
    api.put(
        f"{VIEWS}/plugins/p1", {"kind": "Plugin", "spec": {"resource": GPU, "socket": "/r/device-plugins/gpu.sock"}}
    )
    for text in ("p1", GPU, "gpu.sock", "/r/device-plugins/gpu.sock"):
        assert run("get", "plugins", text, "-o", "name") == 0, run.err
        assert run.out == "plugin.devlet.dev/p1\n"


def test_holders_are_found_in_all_namespaces(run: "Run", api: "API") -> None:
    for namespace in ("b", "a"):
        api.put(f"{VIEWS}/namespaces/{namespace}/holders/train", {"kind": "Holder"})
    assert run("get", "holders", "-A") == 0, run.err
    assert [line.split()[:2] for line in run.out.splitlines()] == [
        ["NAMESPACE", "NAME"],
        ["a", "train"],
        ["b", "train"],
    ]


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        (["-w", "-o", "name"], [*ALL, ALL[0], "gpu.example.com:gpu:gpu-3"]),
        (["--watch-only"], [ALL[0], "gpu.example.com:gpu:gpu-3"]),
    ],
)
def test_what_changes_can_be_followed(
    run: "Run", api: "API", monkeypatch: pytest.MonkeyPatch, flags: list[str], shown: list[str]
) -> None:
    def change() -> None:
        for id in ("gpu-3", "gpu-1"):
            put_device(api, GPU, id)

    steps: list[Callable[[], object]] = [lambda: None, change, lambda: os.kill(os.getpid(), signal.SIGINT)]
    monkeypatch.setattr("time.sleep", lambda seconds: steps.pop(0)())
    assert run("get", "devices", *flags) == 130
    assert listed(run) == shown


def test_a_device_can_be_waited_for(run: "Run", api: "API", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: put_device(api, GPU, "gpu-3"))
    assert run("wait", "--for=create", "device/gpu.example.com:gpu:gpu-3") == 0, run.err
    assert run("wait", "--for=jsonpath={.spec.resource}=" + GPU, "device/gpu-3") == 0, run.err
    assert run.out == "device.devlet.dev/gpu.example.com:gpu:gpu-3 condition met\n"


def test_waiting_for_a_device_ends_in_time(run: "Run") -> None:
    assert run("wait", "--for=delete", "device/gpu-1", "--timeout=1ms") == 1
    assert run.err == "error: timed out waiting for the condition on devices/gpu.example.com:gpu:gpu-1\n"


@pytest.mark.parametrize("verb", [["get", "devices"], ["describe", "devices"], ["get", "devices", "gpu-1"]])
def test_a_devlet_without_views_is_distinguished_from_one_without_devices(
    run: "Run", api: "API", verb: list[str]
) -> None:
    api.objects.clear()
    gone = {"kind": "Status", "code": 404, "reason": "NotFound", "message": "the server could not find it"}
    api.answers["GET", f"{VIEWS}/devices"] = (404, gone)
    assert run(*verb) == 1
    assert run.err.startswith(
        "error: the running devlet does not serve devices, because it is older than this command: "
    )
    api.answers.clear()
    assert run("get", "devices") == 0
    assert run.err == "No resources found\n"
