from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.node.devices.container_options import ContainerOptions
from devlet.node.devices.records import DeviceRecord, DeviceState, PluginRecord, PluginState
from devlet.node.views import NodeViews, device_documents, device_name, plugin_documents
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.objects.types.container import Container
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import Pod, PodSpec, PodStatus
from devlet.plugins.devices import Options
from devlet.runtime.description import Description, Wanted

GPU = ResourceName("a.com/gpu")
SINCE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
UID, MAIN = PodUID("u1"), ContainerName("main")
POD = Pod(
    metadata=ObjectMeta(name="train", namespace="ns", uid="u1", labels={"app": "x"}),
    spec=PodSpec(
        init_containers=(Container(name=ContainerName("init")),),
        containers=(Container(name=ContainerName("idle")), Container(name=MAIN)),
    ),
    status=PodStatus(phase="Running"),
)
HELD = DeviceRecord(GPU, DeviceID("g0"), "Healthy", (0, 1), DeviceState.HELD, UID, MAIN, SINCE)
FREE = DeviceRecord(GPU, DeviceID("g1"), "Unhealthy", (), DeviceState.FREE)


def held(pod: PodUID, container: ContainerName) -> dict[ResourceName, dict[DeviceID, tuple[int, ...]]]:
    return {GPU: {DeviceID("g0"): (0, 1)}} if (pod, container) in ((UID, "init"), (UID, MAIN)) else {}


def test_a_device_shows_its_holder() -> None:
    [document] = device_documents([HELD], [POD])
    assert document == {
        "kind": "Device",
        "apiVersion": "devlet.dev/v1alpha1",
        "metadata": {"name": "a.com:gpu:g0"},
        "spec": {"resource": "a.com/gpu", "id": "g0", "numaNodes": [0, 1]},
        "status": {
            "health": "Healthy",
            "state": "Held",
            "holder": {"namespace": "ns", "pod": "train", "podUID": "u1", "container": "main"},
            "since": "2026-01-02T03:04:05Z",
        },
    }


def test_a_free_device_has_no_holder() -> None:
    [document] = device_documents([FREE], [POD])
    assert document["status"] == {"health": "Unhealthy", "state": "Free"}


def test_a_pod_that_is_gone_is_known_by_its_uid() -> None:
    [document] = device_documents([HELD], [])
    assert document["status"]["holder"] == {"podUID": "u1", "container": "main"}


def test_documents_are_sorted_by_natural_name() -> None:
    tenth = DeviceRecord(GPU, DeviceID("g10"), "Healthy", (), DeviceState.FREE)
    second = DeviceRecord(GPU, DeviceID("g2"), "Healthy", (), DeviceState.FREE)
    assert [d["spec"]["id"] for d in device_documents([tenth, FREE, second], [])] == ["g1", "g2", "g10"]


@given(first=st.text(min_size=1), second=st.text(min_size=1))
def test_every_device_has_a_unique_name_for_urls(first: str, second: str) -> None:
    one, other = device_name(GPU, DeviceID(first)), device_name(GPU, DeviceID(second))
    assert (one == other) == (first == second)
    assert one.isascii() and one.isprintable()
    assert not set("/%?# ") & set(one)


def test_plain_ids_are_readable_in_names() -> None:
    assert device_name(GPU, DeviceID("GPU-0a:1@2_x.y+z")) == "a.com:gpu:GPU-0a:1@2_x.y+z"
    assert device_name(GPU, DeviceID("/dev/x~%")) == "a.com:gpu:~2Fdev~2Fx~7E~25"


def test_a_plugin_shows_its_state() -> None:
    record = PluginRecord(
        GPU, Path("/p/g.sock"), "v1beta1", PluginState.CONNECTED, SINCE, Options(pre_start=True), 42, 2, 1, 1, "late"
    )
    [document] = plugin_documents([record])
    assert document["metadata"] == {"name": "a.com:gpu"}
    assert document["spec"] == {
        "resource": "a.com/gpu",
        "socket": "/p/g.sock",
        "api": "v1beta1",
        "options": {"preStartRequired": True, "getPreferredAllocationAvailable": False},
    }
    assert document["status"] == {
        "state": "Connected",
        "since": "2026-01-02T03:04:05Z",
        "healthy": 2,
        "unhealthy": 1,
        "held": 1,
        "pid": 42,
        "message": "late",
    }


def test_the_instance_in_use_has_the_plain_name() -> None:
    standby = PluginRecord(GPU, Path("/p/old.sock"), "v1beta1", PluginState.STANDBY, SINCE)
    used = PluginRecord(GPU, Path("/p/new.sock"), "v1beta1", PluginState.CONNECTED, SINCE)
    shown = {d["metadata"]["name"]: d["spec"]["socket"] for d in plugin_documents([standby, used])}
    assert shown == {"a.com:gpu": "/p/new.sock", "a.com:gpu~2": "/p/old.sock"}


def test_a_plugin_that_has_not_returned_has_no_socket() -> None:
    [document] = plugin_documents([PluginRecord(GPU, None, "", PluginState.AWAITED, SINCE)])
    assert "socket" not in document["spec"]
    assert not {"pid", "message"} & document["status"].keys()


class Node:
    """The sources, with the methods of the device manager and the pod manager."""

    def active(self) -> list[Pod]:
        return [POD]

    def device_records(self) -> list[DeviceRecord]:
        return [HELD, FREE]

    def plugin_records(self) -> list[PluginRecord]:
        return [PluginRecord(GPU, None, "", PluginState.AWAITED, SINCE)]

    def container_devices(
        self, pod: PodUID, container: ContainerName
    ) -> dict[ResourceName, dict[DeviceID, tuple[int, ...]]]:
        return held(pod, container)

    def options(self, pod: PodUID, container: ContainerName) -> ContainerOptions | None:
        return None


class Runtime:
    async def described(self, wanted: Sequence[Wanted]) -> Sequence[Description]:
        return [Description(notes=(f"of {each.pod.name}/{each.container.name}",)) for each in wanted]


@pytest.mark.anyio
async def test_views_show_the_node_as_it_is() -> None:
    views = NodeViews(Node(), Node(), runtime=Runtime())
    assert [d["metadata"]["name"] for d in views.devices()] == ["a.com:gpu:g0", "a.com:gpu:g1"]
    assert [d["metadata"]["name"] for d in views.plugins()] == ["a.com:gpu"]
    [holder] = await views.holders()
    assert (holder["metadata"]["name"], holder["status"]["containers"][0]["notes"]) == ("train", ["of train/init"])
