from pathlib import Path
from typing import Any

import pytest

from devlet.errors import InvalidInput, NotFound
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.runtime.cdi.host_nodes import HostNode
from devlet.runtime.cdi.registry import Registry, SpecFile, build
from devlet.runtime.cdi.spec import ContainerEdits, Device, Spec
from devlet.runtime.cdi.spec import DeviceNode as CdiNode
from devlet.runtime.containers import Config
from devlet.runtime.oci import OCI_VERSION, cdi_devices, describe

DEVICES = build(
    [
        SpecFile(
            Path("/etc/cdi/gpu.json"),
            0,
            Spec(
                "0.5.0",
                "vendor.com/gpu",
                (
                    Device("0", ContainerEdits(env=("GPU=0",), device_nodes=(CdiNode("/dev/gpu0"),))),
                    Device("1", ContainerEdits(env=("GPU=1",))),
                ),
                ContainerEdits(env=("DRIVER=7",)),
            ),
        )
    ]
)
NODES = {"/dev/gpu0": HostNode("c", 195, 0, 0o666), "/dev/real": HostNode("b", 8, 1, 0o660, 0, 6)}
FOUND = {
    "/dev/link": [("", "/dev/real")],
    "/dev/all": [("x/gpu0", "/dev/gpu0"), ("y", "/dev/real")],
}


def described(config: Config, base: dict[str, Any] | None = None) -> dict[str, Any]:
    return describe(config, DEVICES, base, look=NODES.__getitem__, find=FOUND.__getitem__)


def test_an_empty_config_adds_nothing() -> None:
    assert described(Config()) == {"ociVersion": OCI_VERSION}


@pytest.mark.spec("DN-7.1.3")
def test_a_container_gets_the_direct_edits_and_those_of_cdi_devices() -> None:
    config = Config(
        env=(("MODE", "fast"), ("GPU", "none")),
        mounts=(Mount("/data", "/srv/data", read_only=True), Mount("/", "/srv/root")),
        devices=(DeviceNode("/dev/disk", "/dev/link", "rw"),),
        annotations=(("vendor.com/note", "x"),),
        cdi_devices=("vendor.com/gpu=0",),
    )
    assert described(config) == {
        "ociVersion": OCI_VERSION,
        "process": {"env": ["MODE=fast", "GPU=0", "DRIVER=7"]},
        "mounts": [
            {"destination": "/data", "source": "/srv/data", "type": "bind", "options": ["rbind", "rprivate", "ro"]},
            {"destination": "/", "source": "/srv/root", "type": "bind", "options": ["rbind", "rprivate", "rw"]},
        ],
        "linux": {
            "devices": [
                {"path": "/dev/disk", "type": "b", "major": 8, "minor": 1, "fileMode": 0o660, "uid": 0, "gid": 6},
                {"path": "/dev/gpu0", "type": "c", "major": 195, "minor": 0, "fileMode": 0o666},
            ],
            "resources": {
                "devices": [
                    {"allow": True, "type": "b", "major": 8, "minor": 1, "access": "rw"},
                    {"allow": True, "type": "c", "major": 195, "minor": 0, "access": "rwm"},
                ]
            },
        },
        "annotations": {"vendor.com/note": "x"},
    }


def test_the_base_spec_is_kept() -> None:
    base = {"ociVersion": "1.0.0", "process": {"args": ["sh"], "env": ["PATH=/bin"]}, "annotations": {"a": "b"}}
    config = Config(cdi_devices=("vendor.com/gpu=1",), annotations=(("c", "d"),))
    assert described(config, base) == {
        "ociVersion": "1.0.0",
        "process": {"args": ["sh"], "env": ["PATH=/bin", "DRIVER=7", "GPU=1"]},
        "annotations": {"a": "b", "c": "d"},
    }


@pytest.mark.spec("DN-7.1.1", "DN-7.1.2")
def test_cdi_devices_are_listed_once_those_of_the_field_first() -> None:
    names = tuple(f"vendor.com/gpu={i}" for i in (1, 0, 1))
    annotations = (("cdi.k8s.io/x", "vendor.com/gpu=2,vendor.com/gpu=0"),)
    assert cdi_devices(Config(cdi_devices=names, annotations=annotations)) == tuple(
        f"vendor.com/gpu={i}" for i in (1, 0, 2)
    )
    with pytest.raises(InvalidInput, match=r"annotation cdi\.k8s\.io/x"):
        described(Config(annotations=(("cdi.k8s.io/x", "gpu0"),)))


@pytest.mark.spec("DN-7.3.4")
def test_a_container_with_an_unresolvable_device_gets_nothing_at_all() -> None:
    with pytest.raises(NotFound, match=r"unresolvable CDI devices vendor\.com/gpu=7, vendor\.com/nic=0 "):
        described(Config(cdi_devices=("vendor.com/gpu=7", "vendor.com/gpu=1", "vendor.com/nic=0")))


def test_a_directory_stands_for_its_device_nodes() -> None:
    linux = described(Config(devices=(DeviceNode("/dev/in", "/dev/all", "r"),)))["linux"]
    assert [(device["path"], device["major"]) for device in linux["devices"]] == [
        ("/dev/in/x/gpu0", 195),
        ("/dev/in/y", 8),
    ]
    assert [rule["access"] for rule in linux["resources"]["devices"]] == ["r", "r"]


def test_a_device_without_permissions_cannot_be_opened() -> None:
    (rule,) = described(Config(devices=(DeviceNode("/dev/x", "/dev/link"),)))["linux"]["resources"]["devices"]
    assert rule == {"allow": True, "type": "b", "major": 8, "minor": 1}


def test_links_to_device_nodes_are_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/null")
    config = Config(devices=(DeviceNode("/dev/x", str(tmp_path / "link"), "r"),))
    (device,) = describe(config, Registry())["linux"]["devices"]
    assert (device["path"], device["major"], device["minor"]) == ("/dev/x", 1, 3)
    with pytest.raises(NotFound, match="/dev/gone"):
        describe(Config(devices=(DeviceNode("/dev/x", "/dev/gone"),)), Registry())
