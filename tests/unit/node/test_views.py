from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from devlet.node.devices.container_options import ContainerOptions
from devlet.node.devices.records import DeviceRecord, DeviceState, PluginRecord, PluginState
from devlet.node.views import NodeViews, device_documents, device_name, holder_documents, plugin_documents
from devlet.objects.container import Container
from devlet.objects.edits import DeviceNode, Mount
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.objects.meta import ObjectMeta
from devlet.objects.pod import Pod, PodSpec, PodStatus
from devlet.plugins.devices import Options

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
OPTIONS = ContainerOptions(
    env=(("A", "1"),),
    mounts=(Mount("/c", "/h", True),),
    devices=(DeviceNode("/dev/c", "/dev/h", "rw"),),
    annotations=(("k", "v"),),
    cdi_devices=("a.com/gpu=0",),
    conflicts=("a.com/nic wanted A",),
)


def held(pod: PodUID, container: ContainerName) -> dict[ResourceName, dict[DeviceID, tuple[int, ...]]]:
    return {GPU: {DeviceID("g0"): (0, 1)}} if (pod, container) in ((UID, "init"), (UID, MAIN)) else {}


def options(pod: PodUID, container: ContainerName) -> ContainerOptions | None:
    return OPTIONS if (pod, container) == (UID, MAIN) else None


def test_a_device_tells_who_has_it() -> None:
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


def test_a_device_that_nobody_has_says_nothing_of_a_holder() -> None:
    [document] = device_documents([FREE], [POD])
    assert document["status"] == {"health": "Unhealthy", "state": "Free"}


def test_a_pod_that_is_gone_is_known_by_its_uid() -> None:
    [document] = device_documents([HELD], [])
    assert document["status"]["holder"] == {"podUID": "u1", "container": "main"}


def test_documents_are_ordered_by_name_as_people_count() -> None:
    tenth = DeviceRecord(GPU, DeviceID("g10"), "Healthy", (), DeviceState.FREE)
    second = DeviceRecord(GPU, DeviceID("g2"), "Healthy", (), DeviceState.FREE)
    assert [d["spec"]["id"] for d in device_documents([tenth, FREE, second], [])] == ["g1", "g2", "g10"]


@given(first=st.text(min_size=1), second=st.text(min_size=1))
def test_any_device_has_a_name_of_its_own_that_can_be_part_of_a_url(first: str, second: str) -> None:
    one, other = device_name(GPU, DeviceID(first)), device_name(GPU, DeviceID(second))
    assert (one == other) == (first == second)
    assert one.isascii() and one.isprintable()
    assert not set("/%?# ") & set(one)


def test_plain_ids_are_readable_in_names() -> None:
    assert device_name(GPU, DeviceID("GPU-0a:1@2_x.y+z")) == "a.com:gpu:GPU-0a:1@2_x.y+z"
    assert device_name(GPU, DeviceID("/dev/x~%")) == "a.com:gpu:~2Fdev~2Fx~7E~25"


def test_a_plugin_says_how_it_is() -> None:
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


def test_an_awaited_plugin_has_no_socket() -> None:
    [document] = plugin_documents([PluginRecord(GPU, None, "", PluginState.AWAITED, SINCE)])
    assert "socket" not in document["spec"]
    assert not {"pid", "message"} & document["status"].keys()


def test_a_holder_shows_what_its_containers_get() -> None:
    [document] = holder_documents([POD], [HELD, FREE], held, options)
    assert document["metadata"] == {"name": "train", "namespace": "ns", "labels": {"app": "x"}}
    assert document["spec"] == {"podUID": "u1"}
    status = document["status"]
    assert (status["phase"], status["since"]) == ("Running", "2026-01-02T03:04:05Z")
    devices = [{"resource": "a.com/gpu", "ids": ["g0"]}]
    assert status["containers"] == [
        {"name": "init", "devices": devices},
        {
            "name": "main",
            "devices": devices,
            "options": {
                "env": [{"name": "A", "value": "1"}],
                "mounts": [{"containerPath": "/c", "hostPath": "/h", "readOnly": True}],
                "devices": [{"containerPath": "/dev/c", "hostPath": "/dev/h", "permissions": "rw"}],
                "annotations": {"k": "v"},
                "cdiDevices": ["a.com/gpu=0"],
                "conflicts": ["a.com/nic wanted A"],
            },
        },
    ]


def test_a_pod_without_devices_is_no_holder() -> None:
    assert holder_documents([POD], [], lambda pod, container: {}, options) == []


def test_since_is_unknown_for_what_was_held_before_a_restart() -> None:
    before = DeviceRecord(GPU, DeviceID("g2"), "Healthy", (), DeviceState.HELD, UID, MAIN, None)
    [document] = holder_documents([POD], [HELD, before], held, options)
    assert "since" not in document["status"]


class Node:
    """The sources, as device manager and pod manager offer them."""

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
        return options(pod, container)


def test_views_show_the_node_as_it_is() -> None:
    views = NodeViews(Node(), Node())
    assert [d["metadata"]["name"] for d in views.devices()] == ["a.com:gpu:g0", "a.com:gpu:g1"]
    assert [d["metadata"]["name"] for d in views.plugins()] == ["a.com:gpu"]
    assert [d["metadata"]["name"] for d in views.holders()] == ["train"]
