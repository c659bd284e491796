import msgspec
import pytest

from devlet.cassettes.cassette import Cassette, DeviceEdits, Grant, Plugin, PluginDevice
from devlet.runtime.cdi.spec import ContainerEdits


def test_members_have_the_names_that_the_api_would_give_them() -> None:
    plugin = Plugin("example.com/led", (PluginDevice("a", numa_nodes=(1,)),), grants=(Grant(cdi_devices=("a.b/c=d",)),))
    assert msgspec.json.decode(msgspec.json.encode(plugin)) == {
        "resource": "example.com/led",
        "devices": [{"id": "a", "numaNodes": [1]}],
        "grants": [{"cdiDevices": ["a.b/c=d"]}],
    }
    assert msgspec.json.encode(DeviceEdits(ContainerEdits(env=("A=b",)))) == b'{"containerEdits":{"env":["A=b"]}}'


def test_an_unknown_field_is_rejected() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `colour`"):
        msgspec.convert({"node": "n", "plugins": [{"resource": "a.b/c", "colour": "red"}]}, type=Cassette)
