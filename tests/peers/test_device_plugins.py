"""Unmodified device plugins in Go, devlet between them and kubectl: their devices are counted, handed out and given
back."""

import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devlet.objects.documents import Document
from devlet.testing.embedded import EmbeddedApi, embedded_api
from devlet.testing.waiting import until
from tests.support.cluster_contract.specimens import unique
from tests.support.peers.drivers import generic_device_plugin, sample_device_plugin
from tests.support.peers.kube_programs import kube_controller_manager, kube_scheduler

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

NULL, DISK, SAMPLE = "squat.ai/null", "squat.ai/disk", "example.com/resource"
DEVICES: list[dict[str, Any]] = [
    {"name": "null", "groups": [{"count": 3, "paths": [{"path": "/dev/null"}]}]},
    {
        "name": "disk",
        "groups": [
            {
                "paths": [
                    {"path": "/dev/full", "mountPath": "/dev/disk", "permissions": "r"},
                    {"path": "/etc/hosts", "mountPath": "/etc/disk", "type": "Mount", "readOnly": True},
                ]
            }
        ],
    },
]


@pytest.fixture(scope="module")
async def api(peers: "Peers") -> AsyncIterator[EmbeddedApi]:
    """devlet, and two plugins whose devices are all known to it."""
    peers.need("kubectl", "generic-device-plugin", "sample-device-plugin")
    path = Path(tempfile.mkdtemp(prefix="dv"))
    async with (
        embedded_api(path, binaries=peers.binaries, arguments=["--node-name=n1"]) as running,
        generic_device_plugin(peers.binaries, path, DEVICES),
        sample_device_plugin(peers.binaries, path),
    ):
        await until(partial(states, running), lambda found: found == ["Free"] * 6)
        yield running
    shutil.rmtree(path)


@pytest.fixture
async def namespace(api: EmbeddedApi) -> AsyncIterator[str]:
    """Of one test. Its pods end with it, and hold nothing then."""
    name = unique("test")
    await kubectl(api, "create", "namespace", name)
    yield name
    await kubectl(api, "delete", "namespace", name, "--timeout=60s")
    await until(partial(states, api), lambda found: set(found) == {"Free"})


async def kubectl(api: EmbeddedApi, *arguments: str, stdin: str = "") -> str:
    done = await api.kubectl(*arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def read(api: EmbeddedApi, *what: str) -> Any:
    return json.loads(await kubectl(api, "get", *what, "-o", "json"))


async def states(api: EmbeddedApi) -> list[str]:
    return [device["status"]["state"] for device in (await read(api, "devices"))["items"]]


async def held(api: EmbeddedApi, resource: str) -> int:
    found = (await read(api, "devices"))["items"]
    return sum(each["spec"]["resource"] == resource and each["status"]["state"] == "Held" for each in found)


def pod(name: str, limits: Mapping[str, int], *, node: str | None = "n1") -> Document:
    container = {"name": "main", "image": "none", "resources": {"limits": {k: str(v) for k, v in limits.items()}}}
    spec: Document = {"containers": [container]} | ({"nodeName": node} if node else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def apply(api: EmbeddedApi, namespace: str, *pods: Document) -> None:
    await kubectl(api, "apply", "-n", namespace, "-f", "-", stdin="\n".join(map(json.dumps, pods)))


async def ready(api: EmbeddedApi, namespace: str, *names: str) -> None:
    await kubectl(api, "wait", "-n", namespace, "--for=condition=Ready", *(f"pod/{n}" for n in names), "--timeout=60s")


@pytest.mark.spec("DP-8.03")
async def test_their_devices_are_what_the_node_has(api: EmbeddedApi) -> None:
    expected = {NULL: "3", DISK: "1", SAMPLE: "2"}

    async def counted() -> list[dict[str, str]]:
        status = (await read(api, "node", "n1"))["status"]
        return [{name: status[key].get(name) for name in expected} for key in ("capacity", "allocatable")]

    await until(counted, lambda found: found == [expected, expected])


async def test_a_pod_gets_what_goes_with_its_devices_and_gives_them_back(api: EmbeddedApi, namespace: str) -> None:
    await apply(api, namespace, pod("p", {NULL: 2, DISK: 1, SAMPLE: 1}))
    await ready(api, namespace, "p")
    [container] = (await read(api, "holder", "p", "-n", namespace))["status"]["containers"]
    counts = {each["resource"]: len(each["ids"]) for each in container["devices"]}
    assert (container["name"], counts) == ("main", {NULL: 2, DISK: 1, SAMPLE: 1})
    [sample] = [each["ids"][0] for each in container["devices"] if each["resource"] == SAMPLE]
    assert container["options"] == {
        "devices": [
            {"containerPath": "/dev/disk", "hostPath": "/dev/full", "permissions": "r"},
            {"containerPath": "/dev/null", "hostPath": "/dev/null", "permissions": "mrw"},
        ],
        "mounts": [
            {"containerPath": f"/tmp/{sample}", "hostPath": f"/tmp/{sample}", "readOnly": False},
            {"containerPath": "/etc/disk", "hostPath": "/etc/hosts", "readOnly": True},
        ],
    }
    await kubectl(api, "delete", "pod", "p", "-n", namespace)
    await until(partial(states, api), lambda found: found == ["Free"] * 6)


@pytest.mark.spec("DP-8.24")
async def test_a_pod_that_wants_more_than_there_is_fails_and_holds_nothing(api: EmbeddedApi, namespace: str) -> None:
    await apply(api, namespace, pod("greedy", {NULL: 4, DISK: 1}))
    await kubectl(api, "wait", "-n", namespace, "--for=jsonpath={.status.phase}=Failed", "pod/greedy", "--timeout=60s")
    status = (await read(api, "pod", "greedy", "-n", namespace))["status"]
    assert status["reason"] == "UnexpectedAdmissionError"
    assert f"requested number of devices unavailable for {NULL}. Requested: 4, Available: 3" in status["message"]
    assert await states(api) == ["Free"] * 6


async def test_kubectl_shows_who_has_what(api: EmbeddedApi, namespace: str) -> None:
    await apply(api, namespace, pod("p", {SAMPLE: 2}))
    await ready(api, namespace, "p")
    rows = [row.split()[:6] for row in (await kubectl(api, "get", "devices")).splitlines() if SAMPLE in row]
    holder = f"{namespace}/p/main"
    assert rows == [[SAMPLE, id, "Healthy", "<none>", "Held", holder] for id in ("Dev-1", "Dev-2")]
    [row] = (await kubectl(api, "get", "holders", "-n", namespace, "--no-headers")).splitlines()
    assert row.split()[:4] == ["p", SAMPLE, "Dev-1,Dev-2", "main"]
    [row] = [row for row in (await kubectl(api, "get", "plugins")).splitlines() if SAMPLE in row]
    assert row.split()[0] == SAMPLE and "Connected" in row.split()


async def test_the_scheduler_of_kubernetes_counts_them(peers: "Peers", api: EmbeddedApi, namespace: str) -> None:
    peers.need("kube-scheduler")
    async with kube_scheduler(peers.binaries, api.root / "peers", api.kubeconfig):
        first = [f"p{n}" for n in range(3)]
        await apply(api, namespace, *(pod(name, {NULL: 1}, node=None) for name in first))
        await ready(api, namespace, *first)
        await apply(api, namespace, pod("late", {NULL: 1}, node=None))
        refused = await until(partial(read, api, "pod", "late", "-n", namespace), lambda p: p["status"]["conditions"])
        [condition] = [each for each in refused["status"]["conditions"] if each["type"] == "PodScheduled"]
        assert "Insufficient squat.ai/null" in condition["message"]
        await kubectl(api, "delete", "pod", "p1", "-n", namespace)
        await ready(api, namespace, "late")
    assert await held(api, NULL) == 3


async def test_a_board_that_is_plugged_in_later_can_be_had(peers: "Peers", api: EmbeddedApi, root: Path) -> None:
    """The plugin looks every 5 s. Its devices are files, so that nothing has to be plugged in."""
    paths = [{"path": f"{root}/board*", "type": "Mount", "mountPath": "/board"}]
    (root / "board0").touch()

    async def boards() -> list[tuple[str, str]]:
        found = (await read(api, "devices"))["items"]
        ours = [each["status"] for each in found if each["spec"]["resource"] == "squat.ai/board"]
        return sorted((each["state"], each["health"]) for each in ours)

    async with generic_device_plugin(peers.binaries, api.root, [{"name": "board", "groups": [{"paths": paths}]}]):
        await until(boards, lambda found: found == [("Free", "Healthy")])
        await apply(api, "default", pod("p", {"squat.ai/board": 1}))
        await ready(api, "default", "p")
        (root / "board1").touch()
        await until(boards, lambda found: found == [("Free", "Healthy"), ("Held", "Healthy")])
        (root / "board0").unlink()
        await until(boards, lambda found: found == [("Free", "Healthy"), ("Held", "Unknown")])
        await kubectl(api, "delete", "pod", "p")
        await until(boards, lambda found: found == [("Free", "Healthy")])


async def test_the_namespace_controller_of_kubernetes_ends_pods_that_hold_devices(peers: "Peers", root: Path) -> None:
    peers.need("kubectl", "sample-device-plugin", "kube-controller-manager")
    flags = ["--node-name=n1", "--controllers=-garbage-collector,-namespace"]
    controllers = ("garbage-collector-controller", "namespace-controller", "pod-garbage-collector-controller")
    async with (
        embedded_api(root, binaries=peers.binaries, arguments=flags) as api,
        sample_device_plugin(peers.binaries, root),
        kube_controller_manager(peers.binaries, root / "peers", api.kubeconfig, controllers=controllers),
    ):
        await until(partial(states, api), lambda found: found == ["Free", "Free"])
        await kubectl(api, "create", "namespace", "short")
        await apply(api, "short", pod("p", {SAMPLE: 1}))
        await ready(api, "short", "p")
        await kubectl(api, "delete", "namespace", "short", "--timeout=60s")
        await until(partial(states, api), lambda found: found == ["Free", "Free"])
