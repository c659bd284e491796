import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

VIEWS = "/apis/devlet.dev/v1alpha1"
RESOURCE = "/apis/resource.k8s.io/v1"
GPU = "gpu.example.com"
SINCE = "2026-01-02T03:04:05Z"
DRIVER: dict[str, Any] = {
    "kind": "Driver",
    "spec": {"driver": GPU, "endpoint": "/r/plugins/gpu/dra.sock", "service": "v1", "advertised": ["v1.DRAPlugin"]},
    "status": {
        "state": "Disconnected",
        "since": SINCE,
        "registered": SINCE,
        "slices": 1,
        "devices": 2,
        "claims": 1,
        "pods": 1,
        "message": "it hung up",
    },
}


def put_slice(api: "API", name: str, driver: str) -> None:
    spec = {
        "driver": driver,
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 3},
        "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
    }
    api.put(f"{RESOURCE}/resourceslices/{name}", {"spec": spec})


def put_claim(api: "API", name: str, driver: str, device: str) -> None:
    results = [{"driver": driver, "pool": "n1", "device": device}]
    claim = {"status": {"allocation": {"devices": {"results": results}}}}
    api.put(f"{RESOURCE}/namespaces/team/resourceclaims/{name}", claim)


def described(run: "Run", name: str = GPU) -> list[str]:
    assert run("describe", "driver", name) == 0, run.err
    lines = re.sub(r"\(\w+ ago\)", "(… ago)", run.out).splitlines()
    return lines[lines.index(f"Driver:       {GPU}") :]


def test_a_driver_shows_how_it_is_its_slices_and_its_claims(run: "Run", api: "API") -> None:
    api.put(f"{VIEWS}/drivers/{GPU}", DRIVER)
    put_slice(api, "s", GPU)
    put_slice(api, "t", "nic.example.com")
    put_claim(api, "begun", GPU, "gpu-0")
    put_claim(api, "awaited", GPU, "gpu-1")
    put_claim(api, "foreign", "nic.example.com", "gpu-0")
    part = {"driver": GPU, "prepared": True, "devices": [{"pool": "n1", "device": "gpu-0"}]}
    begun = {"state": "Prepared", "drivers": [part], "pods": [{"name": "train", "uid": "p1"}]}
    waits = {"state": "Waiting", "message": "not yet", "waiting": [{"pod": "web", "uid": "p2"}]}
    for name, status in (("begun", begun), ("awaited", waits), ("foreign", waits), ("nosuch", waits)):
        api.put(f"{VIEWS}/namespaces/team/preparedclaims/{name}", {"status": status})
    assert described(run) == [
        "Driver:       gpu.example.com",
        "State:        Disconnected: the connection was lost; calls resume as soon as it is back",
        "Message:      it hung up",
        "Since:        2026-01-02T03:04:05Z (… ago)",
        "Registered:   2026-01-02T03:04:05Z (… ago)",
        "Endpoint:     /r/plugins/gpu/dra.sock",
        "Service:      v1",
        "Advertised:   v1.DRAPlugin",
        "Health:       the driver does not report the health of its devices",
        "Here:         1 slices, 2 devices, 1 claims in use, 1 pods waiting",
        "Slices wiped: <none>",
        "Slices:",
        "  NAME   NODE   POOL   GENERATION   DEVICES   USED",
        "  s      n1     n1     3            2         2",
        "Claims:",
        "  CLAIM          STATE      PREPARED   DEVICES   PODS     WAITING   MESSAGE",
        "  team/awaited   Waiting    no         <none>    <none>   web       not yet",
        "  team/begun     Prepared   yes        gpu-0     train    <none>    <none>",
    ]


def test_the_time_when_its_slices_are_removed_is_shown(run: "Run", api: "API") -> None:
    for hours, told in ((252, "in 10d, unless the driver comes back"), (-1, "now, unless the driver comes back")):
        wipe = (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
        api.put(f"{VIEWS}/drivers/{GPU}", DRIVER | {"status": DRIVER["status"] | {"wipeAt": wipe}})
        [line] = [line for line in described(run) if line.startswith("Slices wiped:")]
        assert line == f"Slices wiped: {wipe} ({told})"


def test_an_instance_that_stands_by_leaves_the_rest_to_the_other(run: "Run", api: "API") -> None:
    status = {"state": "Standby", "since": SINCE, "registered": SINCE}
    api.put(f"{VIEWS}/drivers/{GPU}~2", DRIVER | {"status": status})
    lines = described(run, f"{GPU}~2")
    assert lines[1] == "State:        Standby: another instance is in use; this one takes over if that one exits"
    assert lines[-1].startswith("Health:")


def test_one_that_is_missing_has_no_endpoint(run: "Run", api: "API") -> None:
    status = {"state": "Missing", "claims": 1, "pods": 0, "message": "not registered on this node, but …"}
    api.put(f"{VIEWS}/drivers/{GPU}", {"spec": {"driver": GPU}, "status": status})
    assert described(run) == [
        "Driver:       gpu.example.com",
        "State:        Missing",
        "Message:      not registered on this node, but …",
        "Here:         1 claims in use, 0 pods waiting",
        "Slices wiped: <none>",
        "Slices:       <none>",
        "Claims:       <none>",
    ]


def test_a_driver_is_found_by_its_socket(run: "Run", api: "API") -> None:
    api.put(f"{VIEWS}/drivers/{GPU}", DRIVER)
    assert run("get", "driver", "/r/plugins/gpu/dra.sock", "-o", "name") == 0, run.err
    assert run.out == f"driver.devlet.dev/{GPU}\n"


def test_of_many_claims_some_are_shown_and_the_rest_counted(run: "Run", api: "API") -> None:
    api.put(f"{VIEWS}/drivers/{GPU}", DRIVER)
    for number in range(60):
        status = {"state": "Prepared", "drivers": [{"driver": GPU, "prepared": True, "devices": []}]}
        api.put(f"{VIEWS}/namespaces/team/preparedclaims/c-{number}", {"status": status})
    assert described(run)[-1] == "  and 10 more: devlet get claims -A"
