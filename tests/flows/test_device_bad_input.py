"""Whatever plugins, pods and files do wrong on a whole node: it is said once, in words that name it, where the one who
did it looks; and other plugins and other pods do not notice."""

import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import pytest

from devlet.errors import InvalidObject
from devlet.objects.documents import Document
from devlet.objects.identifiers import DeviceID
from devlet.plugins.devices import Device, Options
from devlet.testing.fake_device_plugin import NO_RESPONSE, FakeDevicePlugin, large_answer
from devlet.testing.node_process import NodeProcess, devices_in_status, pod
from devlet.testing.waiting import until
from tests.support.small_disk import in_mount_namespace, on_small_disk

pytestmark = [pytest.mark.anyio]

NIC = "good.com/nic"
TIMES = """
timeouts:
  pluginDial: 1s
  pluginOptions: 500ms
  pluginAllocate: 500ms
  pluginPreferred: 500ms
  pluginPreStart: 500ms
"""

numbers = count(1)


@pytest.fixture(scope="module")
async def shared() -> AsyncIterator[NodeProcess]:
    """A node with a good plugin of each kind, and a pod that has a device of both."""
    root = Path(tempfile.mkdtemp(prefix="dv"))
    async with NodeProcess(root, TIMES) as node:
        watched = FakeDevicePlugin(node.registry, "good.com/disk", 2, registry=node.registry)
        async with FakeDevicePlugin(node.plugins, NIC, 4, follow=True), watched:
            await node.until_healthy(NIC, 4)
            await node.until_healthy("good.com/disk", 2)
            await node.create(pod("bystander", {NIC: 1, "good.com/disk": 1}))
            await node.until_phase("bystander", "Running")
            yield node
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
async def node(shared: NodeProcess) -> AsyncIterator[NodeProcess]:
    """Afterwards nobody else has noticed anything."""
    before = await shared.pod("bystander")
    yield shared
    assert await shared.pod("bystander") == before
    await shared.until_healthy(NIC, 4)
    await shared.until_healthy("good.com/disk", 2)
    await runs(shared, {NIC: 1})
    assert "Traceback" not in shared.log


@pytest.fixture
async def bad(node: NodeProcess) -> AsyncIterator[FakeDevicePlugin]:
    """A plugin with two devices that is not registered yet."""
    async with FakeDevicePlugin(node.plugins, f"bad.com/dev{next(numbers)}", 2) as plugin:
        yield plugin


async def runs(node: NodeProcess, limits: dict[str, int]) -> None:
    name = f"fine-{next(numbers)}"
    await node.create(pod(name, limits))
    await node.until_phase(name, "Running")
    await node.delete(name)


async def warnings(node: NodeProcess, text: str) -> list[Document]:
    """Events that are warnings and have the text in their message or in the name of what they are about."""
    events = await node.items("/api/v1/events")
    return [
        each
        for each in events
        if each["type"] == "Warning" and (text in each["message"] or text == each["involvedObject"]["name"])
    ]


async def only_warning(node: NodeProcess, text: str) -> Document:
    """The one there is, and it was told once."""
    found = await until(lambda: warnings(node, text))
    assert [each["message"] for each in found] == [found[0]["message"]]
    assert found[0].get("count", 1) == 1
    return found[0]


async def rejected(node: NodeProcess, limits: dict[str, int]) -> Document:
    """A pod with these limits is rejected, with one event that says the same as its status."""
    name = f"unlucky-{next(numbers)}"
    await node.create(pod(name, limits))
    status: Document = (await node.until_phase(name, "Failed"))["status"]
    event = await only_warning(node, name)
    assert (event["reason"], "Pod was rejected: " + event["message"]) == (status["reason"], status["message"])
    return status


async def all_free(node: NodeProcess, plugin: FakeDevicePlugin) -> bool:
    return {each["state"] for each in (await node.devices())[plugin.resource].values()} == {"Free"}


# Registration


async def refusal(plugin: FakeDevicePlugin, **request: Any) -> tuple[str, str]:
    with pytest.raises(grpc.aio.AioRpcError) as e:
        await plugin.register(**request)
    return e.value.code().name, e.value.details() or ""


REQUESTS: dict[str, tuple[dict[str, str], str, str]] = {
    "a version from the future": ({"version": "v9"}, "FAILED_PRECONDITION", 'requested API version "v9"'),
    "no version": ({"version": ""}, "FAILED_PRECONDITION", 'requested API version ""'),
    "a resource without a vendor": ({"resource": "gpu"}, "INVALID_ARGUMENT", "gpu"),
    "a resource of Kubernetes": ({"resource": "kubernetes.io/gpu"}, "INVALID_ARGUMENT", "kubernetes.io/gpu"),
    "a resource with a path": ({"resource": "../../etc/x"}, "INVALID_ARGUMENT", "../../etc/x"),
    "no resource": ({"resource": ""}, "INVALID_ARGUMENT", 'ResourceName ""'),
    "a path out of the directory": ({"endpoint": "../devlet.sock"}, "INVALID_ARGUMENT", '"../devlet.sock"'),
    "an absolute path": ({"endpoint": "/run/x.sock"}, "INVALID_ARGUMENT", '"/run/x.sock"'),
    "the directory itself": ({"endpoint": "."}, "INVALID_ARGUMENT", '"."'),
    "devlet's own socket": ({"endpoint": "kubelet.sock"}, "INVALID_ARGUMENT", '"kubelet.sock"'),
    "no endpoint": ({"endpoint": ""}, "INVALID_ARGUMENT", '""'),
    "an endpoint that is too long": ({"endpoint": "x" * 200}, "INVALID_ARGUMENT", "too long for a socket"),
}


@pytest.mark.parametrize("what", REQUESTS)
async def test_a_wrong_registration_is_refused_with_the_reason(
    node: NodeProcess, bad: FakeDevicePlugin, what: str
) -> None:
    request, code, text = REQUESTS[what]
    answer = await refusal(bad, **request)
    assert answer[0] == code
    assert text in answer[1]
    rows = [status for name, status in (await node.plugin_states()).items() if not name.startswith("good.com")]
    assert {status["state"] for status in rows} == {"Refused"}
    assert any(text in status["message"] for status in rows)
    assert bad.calls == []


async def test_a_refused_plugin_has_a_warning_an_event_and_a_row_until_it_registers(
    node: NodeProcess, bad: FakeDevicePlugin
) -> None:
    for _ in range(2):
        await refusal(bad, version="v9")
    event = await node.until_event("DevicePluginRegistrationFailed", f"plugin {bad.resource} at ")
    assert (event["involvedObject"]["kind"], event["type"]) == ("Node", "Warning")
    assert 'requested API version "v9"' in event["message"]
    assert str(bad.path) in event["message"]
    name = bad.resource.replace("/", ":")
    assert (await node.plugin_states())[name]["state"] == "Refused"
    warnings = [line for line in node.log.splitlines() if "plugin not registered" in line and bad.resource in line]
    assert [line[0] for line in warnings] == ["W"]
    await bad.register()
    await until(node.plugin_states, lambda found: found[name]["state"] in ("Silent", "Connected"))


def make_file(path: Path) -> None:
    path.write_text("not a socket")


def make_dangling_link(path: Path) -> None:
    path.symlink_to("nothing")


def make_dead_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))


def make_nothing(path: Path) -> None:
    pass


MADE: dict[str, Callable[[Path], None]] = {
    "nothing": make_nothing,
    "a file": make_file,
    "a directory": Path.mkdir,
    "a dangling link": make_dangling_link,
    "a socket that nobody serves": make_dead_socket,
}


@pytest.mark.parametrize("what", MADE)
async def test_an_endpoint_that_is_no_socket_of_a_plugin_is_refused(
    node: NodeProcess, bad: FakeDevicePlugin, what: str
) -> None:
    name = f"made-{next(numbers)}.sock"
    MADE[what](node.plugins / name)
    code, text = await refusal(bad, endpoint=name)
    assert code == "UNAVAILABLE"
    assert text.startswith("failed to dial device plugin: ")
    event = await only_warning(node, name)
    assert event["reason"] == "DevicePluginRegistrationFailed"
    assert bad.resource in event["message"]


async def test_a_plugin_that_does_not_tell_its_options_is_refused_in_time(
    node: NodeProcess, bad: FakeDevicePlugin
) -> None:
    bad.hang("GetDevicePluginOptions")
    code, text = await refusal(bad)
    assert code == "UNAVAILABLE"
    assert text.startswith("failed to get device plugin options: ")
    assert (await only_warning(node, bad.resource))["reason"] == "DevicePluginRegistrationFailed"
    bad.recover("GetDevicePluginOptions")
    await bad.register()
    await node.until_healthy(bad.resource, 2)


@pytest.mark.parametrize("what", MADE)
async def test_what_is_no_plugin_in_the_registry_is_left_alone(node: NodeProcess, what: str) -> None:
    path = node.registry / f"made-{next(numbers)}.sock"
    MADE[what](path)
    async with FakeDevicePlugin(node.registry, f"bad.com/dev{next(numbers)}", 1, registry=node.registry) as later:
        await node.until_healthy(later.resource, 1)
        await runs(node, {later.resource: 1})
    assert path in node.registry.iterdir() or what == "nothing"


WRONG: dict[str, tuple[str, Any, str]] = {
    "an unknown type": ("type", "FluxPlugin", "no handler for plugin type 'FluxPlugin'"),
    "a version from the future": ("versions", ["v9"], "v9"),
    "no version": ("versions", [], "version"),
    "a bad name": ("resource", "gpu", "gpu"),
    "a relative endpoint": ("endpoint", "../x.sock", "'../x.sock' is not an absolute path"),
    "an endpoint where nobody is": ("endpoint", "ROOT/nonexistent/x.sock", "failed to dial device plugin"),
    "an endpoint outside of the root": ("endpoint", "/nonexistent/x.sock", "is not below devlet's root"),
}


@pytest.mark.parametrize("what", WRONG)
async def test_a_watched_plugin_is_told_what_is_wrong_with_it(node: NodeProcess, what: str) -> None:
    attribute, value, text = WRONG[what]
    name = f"bad{next(numbers)}"
    plugin = FakeDevicePlugin(node.registry, f"bad.com/{name}", 2, socket=f"{name}.sock", registry=node.registry)
    setattr(plugin, attribute, value.replace("ROOT", str(node.root)) if isinstance(value, str) else value)
    async with plugin:
        assert text in await plugin.until_refused()
        assert plugin.streams == 0


async def test_a_watched_plugin_that_does_not_introduce_itself_holds_nobody_up(node: NodeProcess) -> None:
    name = f"bad.com/dev{next(numbers)}"
    plugin = FakeDevicePlugin(node.registry, name, 2, registry=node.registry)
    plugin.hang("GetInfo")
    async with plugin:
        await plugin.until_asked("GetInfo")
        async with FakeDevicePlugin(node.registry, f"bad.com/dev{next(numbers)}", 1, registry=node.registry) as later:
            await node.until_healthy(later.resource, 1)
        plugin.recover("GetInfo")
        await node.until_healthy(name, 2)


# Calls


async def test_a_pod_with_a_resource_that_no_plugin_could_have_is_refused(node: NodeProcess) -> None:
    with pytest.raises(InvalidObject, match="unheard-of"):
        await node.create(pod("never", {"unheard-of": 1}))


async def test_a_resource_that_the_node_never_heard_of_is_not_its_business(node: NodeProcess) -> None:
    """As for the kubelet: somebody else may provide it."""
    await runs(node, {"nobody.com/thing": 1})


async def test_a_pod_waits_for_a_plugin_that_has_not_listed_its_devices(
    node: NodeProcess, bad: FakeDevicePlugin
) -> None:
    bad.hang("ListAndWatch")
    await bad.register()
    name = f"waits-{next(numbers)}"
    await node.create(pod(name, {bad.resource: 1}))
    assert (await only_warning(node, name))["reason"] == "WaitingForDevicePlugin"
    await runs(node, {NIC: 1})
    bad.recover("ListAndWatch")
    await node.until_phase(name, "Running")
    await node.delete(name)


ALLOCATE: dict[str, tuple[Callable[[FakeDevicePlugin], None], str]] = {
    "no answer": (lambda plugin: plugin.hang("Allocate"), "Allocate"),
    "an error": (lambda plugin: plugin.fail("Allocate", "INTERNAL", "on fire"), "on fire"),
    "an answer for no container": (lambda plugin: plugin.answer("Allocate", NO_RESPONSE), "no container response"),
    "nonsense": (lambda plugin: plugin.answer("Allocate", b"\xff\xff\xff"), "cannot be decoded"),
    "5 MB": (lambda plugin: plugin.answer("Allocate", large_answer(5 << 20)), "bytes"),
}


@pytest.mark.parametrize("what", ALLOCATE)
async def test_a_plugin_that_does_not_allocate_costs_only_the_pod_that_asked(
    node: NodeProcess, bad: FakeDevicePlugin, what: str
) -> None:
    wrong, text = ALLOCATE[what]
    wrong(bad)
    await bad.register()
    await node.until_healthy(bad.resource, 2)
    status = await rejected(node, {bad.resource: 1, NIC: 1})
    assert status["reason"] == "UnexpectedAdmissionError"
    assert text in status["message"]
    assert len(status["message"]) < 1000
    assert await all_free(node, bad)
    bad.recover("Allocate")
    await runs(node, {bad.resource: 2})


async def test_while_one_plugin_does_not_answer_pods_of_others_are_admitted(
    node: NodeProcess, bad: FakeDevicePlugin
) -> None:
    bad.hang("Allocate")
    await bad.register()
    await node.until_healthy(bad.resource, 2)
    name = f"hangs-{next(numbers)}"
    await node.create(pod(name, {bad.resource: 1}))
    await bad.until_asked("Allocate")
    await runs(node, {NIC: 1})
    bad.recover("Allocate")
    await node.until_pod(name, lambda pod: pod["status"].get("phase") in ("Running", "Failed"))


@pytest.mark.parametrize("what", ["no answer", "an error"])
async def test_a_plugin_that_does_not_say_what_it_prefers_costs_only_the_pod_that_asked(
    node: NodeProcess, bad: FakeDevicePlugin, what: str
) -> None:
    bad.options = Options(preferred_allocation=True)
    if what == "no answer":
        bad.hang("GetPreferredAllocation")
    else:
        bad.fail("GetPreferredAllocation")
    await bad.register()
    await node.until_healthy(bad.resource, 2)
    status = await rejected(node, {bad.resource: 1})
    assert status["reason"] == "UnexpectedAdmissionError"
    assert "GetPreferredAllocation" in status["message"]
    assert await all_free(node, bad)


@pytest.mark.parametrize("chosen", [[], ["dev-1"], ["unknown", "", "dev-1"], ["dev-1"] * 1000, ["x" * 10_000]])
async def test_a_nonsensical_preference_is_ignored_as_far_as_it_is_one(
    node: NodeProcess, bad: FakeDevicePlugin, chosen: list[str]
) -> None:
    bad.options = Options(preferred_allocation=True)
    bad.set_devices(4)
    bad.prefer = lambda available, must_include, size: chosen
    await bad.register()
    await node.until_healthy(bad.resource, 4)
    name = f"served-{next(numbers)}"
    await node.create(pod(name, {bad.resource: 2}))
    held = devices_in_status(await node.until_phase(name, "Running"))[bad.resource]
    assert len(held) == 2
    assert held.keys() <= {"dev-0", "dev-1", "dev-2", "dev-3"}
    assert "dev-1" in held or "dev-1" not in chosen
    await node.delete(name)


@pytest.mark.parametrize("what", ["no answer", "an error"])
async def test_a_plugin_that_does_not_prepare_keeps_the_container_from_starting(
    node: NodeProcess, bad: FakeDevicePlugin, what: str
) -> None:
    bad.options = Options(pre_start=True)
    if what == "no answer":
        bad.hang("PreStartContainer")
    else:
        bad.fail("PreStartContainer", "INTERNAL", "cannot prepare")
    await bad.register()
    await node.until_healthy(bad.resource, 2)
    name = f"unprepared-{next(numbers)}"
    await node.create(pod(name, {bad.resource: 1}))
    event = await only_warning(node, name)
    assert event["reason"] == "Failed"
    assert "PreStartContainer" in event["message"]
    waits = await node.until_pod(name, lambda pod: pod["status"].get("containerStatuses"))
    assert waits["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CreateContainerConfigError"
    await node.delete(name)
    assert await all_free(node, bad)


# Device lists


async def test_fewer_devices_than_pods_hold_are_shown_as_unknown(node: NodeProcess, bad: FakeDevicePlugin) -> None:
    await bad.register()
    await node.until_healthy(bad.resource, 2)
    name = f"holds-{next(numbers)}"
    await node.create(pod(name, {bad.resource: 2}))
    await node.until_phase(name, "Running")
    bad.set_devices([])
    gone = {"dev-0": "Unknown", "dev-1": "Unknown"}
    await node.until_pod(name, lambda pod: devices_in_status(pod)[bad.resource] == gone)
    await node.delete(name)


LISTS: dict[str, Callable[[FakeDevicePlugin], None]] = {
    "what is no list": lambda plugin: plugin.send(b"\xff\xff\xff"),
    "a device without an id": lambda plugin: plugin.set_devices([Device(DeviceID(""))]),
    "an endless id": lambda plugin: plugin.set_devices([Device(DeviceID("x" * 100_000))]),
}


@pytest.mark.parametrize("what", LISTS)
async def test_a_wrong_list_is_said_of_the_plugin_and_takes_nothing_from_anybody(
    node: NodeProcess, bad: FakeDevicePlugin, what: str
) -> None:
    await bad.register()
    await node.until_healthy(bad.resource, 2)
    name = f"holds-{next(numbers)}"
    await node.create(pod(name, {bad.resource: 1}))
    await node.until_phase(name, "Running")
    LISTS[what](bad)
    view = bad.resource.replace("/", ":")

    async def message() -> str:
        return str((await node.plugin_states())[view].get("message", ""))

    assert len(await until(message)) < 500
    [event] = await until(lambda: warnings(node, f"{bad.resource} at {bad.path} is not accepted"))
    assert event["reason"] == "DevicePluginListFailed"
    bad.set_devices(2)
    await node.until_healthy(bad.resource, 2)
    document = await node.until_pod(name, lambda pod: set(devices_in_status(pod)[bad.resource].values()) == {"Healthy"})
    assert document["status"]["containerStatuses"][0]["restartCount"] == 0
    await node.delete(name)


# The disk


@pytest.mark.skipif(in_mount_namespace() is None, reason="no mount namespace for a small disk")
def test_on_a_full_disk_pods_with_devices_wait_and_nothing_is_lost(root: Path) -> None:
    plugins = root / "device-plugins"
    plugins.mkdir(mode=0o700)
    story = ["-m", "tests.flows.full_disk_node"]
    command = on_small_disk(plugins, "256k", [sys.executable, *story, str(root)])
    run = subprocess.run(command, capture_output=True, timeout=300)
    assert run.returncode == 0, run.stderr.decode()
    checkpoint = plugins / "kubelet_internal_checkpoint"
    assert json.loads(run.stdout) == {
        "event": f"not admitted yet: {checkpoint} cannot be written: No space left on device",
        "health": [500, 500, 200],
        "reason": f"internal server error: {checkpoint} cannot be written: No space left on device\n",
        "phase": "Pending",
        "written": True,
        "unchanged": True,
        "events": 1,
        "held": ["before", "during"],
        "entries": 2,
        "names": ["kubelet.sock", "kubelet_internal_checkpoint", "vendor_com_gpu.sock"],
    }
