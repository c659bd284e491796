import pytest

from devlet.objects.protobuf_decoder import decoder
from devlet.objects.protobuf_wire import Malformed, delimited
from devlet.objects.schema import message

CORE = "k8s.io.api.core.v1."


def read(name: str, data: bytes) -> object:
    return decoder(message(name)).read(data, 0, len(data))


@pytest.mark.spec("KA-2.3")
def test_keys_of_an_inline_message_are_those_of_its_parent() -> None:
    host_path = delimited(b"\x0a", delimited(b"\x0a", b"/dev"))
    assert read(CORE + "Volume", delimited(b"\x0a", b"v") + delimited(b"\x12", host_path)) == {
        "name": "v",
        "hostPath": {"path": "/dev"},
    }


@pytest.mark.spec("KA-2.3")
def test_members_that_are_missing_get_the_value_go_writes() -> None:
    assert read("k8s.io.api.resource.v1.Counter", b"") == {"value": "0"}
    assert read("k8s.io.api.resource.v1.Counter", b"\x0a\x00") == {"value": "0"}
    assert read(CORE + "HTTPGetAction", b"") == {"port": 0}


def test_a_value_outside_its_message_is_not_read() -> None:
    with pytest.raises(Malformed, match="announced"):
        decoder(message(CORE + "ConfigMap")).read(b"\x12\x05\x0a\x04abcd", 0, 5)


@pytest.mark.parametrize("payload", [b"\x0a\x00", b"\x10\x00\x1a", b"\x18\x01", b"\x12\x01a"])
def test_a_port_with_fields_of_the_wrong_type_is_malformed(payload: bytes) -> None:
    with pytest.raises(Malformed):
        read(CORE + "HTTPGetAction", delimited(b"\x12", payload))


def test_a_quantity_that_is_a_number_is_malformed() -> None:
    with pytest.raises(Malformed, match="should be text"):
        read("k8s.io.api.resource.v1.Counter", delimited(b"\x0a", b"\x08\x01"))
