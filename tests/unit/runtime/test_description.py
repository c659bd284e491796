import json
from pathlib import Path
from typing import Any

import pytest

from devlet.errors import NotCreated, NotFound
from devlet.objects.documents import view
from devlet.objects.identifiers import ContainerName, PodUID
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.objects.types.pod import Pod
from devlet.runtime.cdi.cache import Cache
from devlet.runtime.cdi.host_nodes import HostNode
from devlet.runtime.cdi.registry import Registry, SpecFile, build
from devlet.runtime.cdi.spec import ContainerEdits, Device, Hook, NetDevice, Spec
from devlet.runtime.cdi.spec import DeviceNode as CdiNode
from devlet.runtime.containers import Config
from devlet.runtime.description import Description, Descriptions, Wanted, describe_container, own_spec
from devlet.runtime.oci import OCI_VERSION

EDITS = ContainerEdits(
    env=("GPU=0", "MODE=fast"),
    device_nodes=(CdiNode("/dev/gpu0"),),
    hooks=(Hook("prestart", "/bin/hook"),),
    additional_gids=(44,),
    net_devices=(NetDevice("eth7", "gpu0"),),
)
MISSING = ContainerEdits(device_nodes=(CdiNode("/dev/nosuch"),))
SPEC = Spec("1.1.0", "vendor.com/gpu", (Device("0", EDITS), Device("bad", MISSING)))
DEVICES = build([SpecFile(Path("/etc/cdi/gpu.json"), 0, SPEC)])
NODES = {"/dev/gpu0": HostNode("c", 195, 0, 0o666), "/dev/disk": HostNode("b", 8, 1, 0o660)}


def look(path: str) -> HostNode:
    if path not in NODES:
        raise NotFound(f"{path}: No such file or directory")
    return NODES[path]


def find(path: str) -> list[tuple[str, str]]:
    return [("", path)]


def wanted(config: Config | None, container: dict[str, Any] | None = None, **spec: Any) -> Wanted:
    document = {"metadata": {"uid": "u1"}, "spec": {"containers": [{"name": "main", **(container or {})}], **spec}}
    pod = view(Pod, document)
    return Wanted(pod, pod.spec.containers[0], config)


def described(config: Config | None, container: dict[str, Any] | None = None, **spec: Any) -> Description:
    return describe_container(wanted(config, container, **spec), DEVICES, look=look, find=find)


def test_the_own_spec_is_what_pod_and_container_request() -> None:
    one = wanted(
        None,
        {
            "command": ["run"],
            "args": ["-v"],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {}}}, {"name": "C"}],
            "securityContext": {"runAsUser": 7},
        },
        securityContext={"runAsUser": 5, "runAsGroup": 6, "fsGroup": 9, "supplementalGroups": [8, 9]},
    )
    assert own_spec(one.pod, one.container) == {
        "ociVersion": OCI_VERSION,
        "process": {
            "args": ["run", "-v"],
            "env": ["A=1", "C="],
            "user": {"uid": 7, "gid": 6, "additionalGids": [9, 8]},
        },
    }
    bare = wanted(None)
    assert own_spec(bare.pod, bare.container) == {"ociVersion": OCI_VERSION}


def test_a_container_without_devices_gets_only_its_own_spec() -> None:
    assert described(None, {"args": ["x"]}) == Description({"ociVersion": OCI_VERSION, "process": {"args": ["x"]}})
    assert described(Config(), {"args": ["x"]}).added == {}


def test_additions_are_separate_from_the_own_spec() -> None:
    container = {"env": [{"name": "GPU", "value": "none"}, {"name": "A", "value": "1"}]}
    config = Config(env=(("PLUGIN", "x"),), mounts=(Mount("/in", "/out"),), cdi_devices=("vendor.com/gpu=0",))
    found = described(config, container, securityContext={"runAsUser": 5, "supplementalGroups": [10]})
    assert found.oci is not None
    assert found.oci["process"] == {
        "env": ["GPU=0", "A=1", "PLUGIN=x", "MODE=fast"],
        "user": {"uid": 5, "additionalGids": [10, 44]},
    }
    assert found.added == {
        "process": {"env": ["GPU=0", "PLUGIN=x", "MODE=fast"], "user": {"additionalGids": [44]}},
        "mounts": [{"destination": "/in", "source": "/out", "type": "bind", "options": ["rbind", "rprivate", "rw"]}],
        "hooks": {"prestart": [{"path": "/bin/hook"}]},
        "linux": {
            "devices": [{"path": "/dev/gpu0", "type": "c", "major": 195, "minor": 0, "fileMode": 0o666, "uid": 5}],
            "resources": {"devices": [{"allow": True, "type": "c", "major": 195, "minor": 0, "access": "rwm"}]},
            "netDevices": {"eth7": {"name": "gpu0"}},
        },
    }
    assert found.notes == ()


def test_a_missing_device_node_of_a_plugin_is_a_note() -> None:
    nodes = (DeviceNode("/dev/in", "/dev/fake0", "rw"), DeviceNode("/dev/x", "/dev/disk", "r"))
    found = described(Config(devices=nodes))
    assert [node["path"] for node in found.added["linux"]["devices"]] == ["/dev/x"]
    assert found.notes == ("no device node for the container: /dev/fake0: No such file or directory",)


@pytest.mark.spec("DN-7.3.4")
def test_an_unresolvable_cdi_device_is_named_with_the_reason() -> None:
    with pytest.raises(NotCreated) as caught:
        described(Config(cdi_devices=("vendor.com/gpu=0", "vendor.com/gpu=7")))
    text = "unresolvable CDI devices vendor.com/gpu=7 (vendor.com/gpu=7: no such device)"
    assert str(caught.value) == text


def test_the_error_for_a_missing_device_node_names_the_cdi_device() -> None:
    with pytest.raises(NotCreated, match=r"CDI devices vendor\.com/gpu=bad: device node /dev/nosuch has no type"):
        described(Config(cdi_devices=("vendor.com/gpu=bad",)))


def test_an_annotation_without_a_valid_cdi_device_is_reported() -> None:
    with pytest.raises(NotCreated, match=r"annotation cdi\.k8s\.io/x: "):
        described(Config(annotations=(("cdi.k8s.io/x", "gpu0"),)))


def test_real_device_nodes_are_read() -> None:
    found = describe_container(wanted(Config(devices=(DeviceNode("/dev/zero", "/dev/null", "r"),))), Registry())
    (node,) = found.added["linux"]["devices"]
    assert (node["path"], node["major"], node["minor"]) == ("/dev/zero", 1, 3)


pytestmark = pytest.mark.anyio

MAIN = ContainerName("main")
GPU = Config(cdi_devices=("v/c=a",))


def container_with(config: Config | None = GPU, uid: str = "u1") -> Wanted:
    pod = view(Pod, {"metadata": {"uid": uid}, "spec": {"containers": [{"name": "main"}]}})
    return Wanted(pod, pod.spec.containers[0], config)


def write(folder: Path, value: str) -> None:
    device = {"name": "a", "containerEdits": {"env": [f"A={value}"]}}
    (folder / "x.json").write_text(json.dumps({"cdiVersion": "0.5.0", "kind": "v/c", "devices": [device]}))


def env(description: Description) -> list[str]:
    found: list[str] = description.added.get("process", {}).get("env", [])
    return found


class CountingCache(Cache):
    looks = 0

    def refresh(self) -> Registry:
        self.looks += 1
        return super().refresh()


def always(_: Wanted) -> bool:
    return True


def never(_: Wanted) -> bool:
    return False


async def test_a_new_description_is_current_and_a_kept_one_does_not_change(tmp_path: Path) -> None:
    descriptions = Descriptions(Cache([tmp_path]))
    write(tmp_path, "1")
    first = await descriptions.make(container_with())
    descriptions.keep(container_with(), first)
    write(tmp_path, "2")
    assert env(await descriptions.make(container_with())) == ["A=2"]
    assert descriptions.get(PodUID("u1"), MAIN) is first
    assert await descriptions.all([container_with()], lasting=always) == [first]
    descriptions.forget(PodUID("u1"))
    assert descriptions.get(PodUID("u1"), MAIN) is None


async def test_specs_are_read_only_for_cdi_devices(tmp_path: Path) -> None:
    cache = CountingCache([tmp_path])
    descriptions = Descriptions(cache)
    write(tmp_path, "1")
    plain = Config(env=(("B", "2"),), devices=(DeviceNode("/dev/x", "/dev/null", "r"),))
    assert env(await descriptions.make(container_with(plain))) == ["B=2"]
    assert (await descriptions.make(container_with(None))).added == {}
    await descriptions.all([container_with(plain, "u2"), container_with(None, "u3")], lasting=never)
    assert cache.looks == 0
    assert env(await descriptions.make(container_with(Config(annotations=(("cdi.k8s.io/x", "v/c=a"),))))) == ["A=1"]
    assert cache.looks == 1


async def test_many_containers_are_described_with_one_refresh(tmp_path: Path) -> None:
    cache = CountingCache([tmp_path])
    write(tmp_path, "1")
    found = await Descriptions(cache).all([container_with(uid=f"u{i}") for i in range(100)], lasting=never)
    assert ([env(each) for each in found], cache.looks) == ([["A=1"]] * 100, 1)


async def test_lasting_descriptions_are_kept_and_others_are_created_again(tmp_path: Path) -> None:
    descriptions = Descriptions(Cache([tmp_path]))
    write(tmp_path, "1")
    both = [container_with(uid="u1"), container_with(uid="u2")]
    await descriptions.all(both, lasting=lambda each: each.pod.uid == "u1")
    write(tmp_path, "2")
    assert [env(each) for each in await descriptions.all(both, lasting=never)] == [["A=1"], ["A=2"]]


async def test_a_container_that_starts_meanwhile_keeps_the_description_of_its_start(tmp_path: Path) -> None:
    descriptions = Descriptions(Cache([tmp_path]))
    write(tmp_path, "1")
    started = Description({"ociVersion": "x"})

    def lasting(each: Wanted) -> bool:
        descriptions.keep(each, started)
        return True

    assert await descriptions.all([container_with()], lasting=lasting) == [started]


async def test_the_error_says_where_specs_are_read_from(tmp_path: Path) -> None:
    with pytest.raises(NotCreated, match=f"v/c=a: no such device.*; CDI specs are read from {tmp_path}"):
        await Descriptions(Cache([tmp_path])).make(container_with())


async def test_a_failed_description_says_why_and_is_retried(tmp_path: Path) -> None:
    descriptions = Descriptions(Cache([tmp_path]))
    (found,) = await descriptions.all([container_with()], lasting=always)
    assert found.oci is None
    assert found.notes == ("cannot be started: unresolvable CDI devices v/c=a (v/c=a: no such device)",)
    write(tmp_path, "1")
    assert env((await descriptions.all([container_with()], lasting=always))[0]) == ["A=1"]


async def test_without_specs_descriptions_are_empty() -> None:
    descriptions = Descriptions(None)
    assert await descriptions.make(container_with()) == Description()
    assert await descriptions.all([container_with()], lasting=always) == [Description()]
    assert descriptions.get(PodUID("u1"), MAIN) is None
