import pytest

from devlet.objects.documents import Document
from devlet.objects.protobuf.decoder import decoder
from devlet.objects.protobuf.wire import DELIMITED, Malformed, delimited, tag
from devlet.objects.schema.messages import message

CORE = "k8s.io.api.core.v1."


def read(name: str, data: bytes) -> Document:
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


DEVICE = "k8s.io.api.resource.v1.Device"
_ATTRIBUTE = message("k8s.io.api.resource.v1.DeviceAttribute")
STRINGS = tag(next(n for n, field in _ATTRIBUTE.fields.items() if field.json_name == "strings"), DELIMITED)


def entry(name: bytes, value: bytes) -> bytes:
    return delimited(b"\x0a", name) + delimited(b"\x12", value)


def attribute(name: bytes, value: bytes) -> bytes:
    return delimited(b"\x12", entry(name, value))


def test_values_cached_by_their_bytes_are_not_shared() -> None:
    data = delimited(b"\x0a", b"gpu-0") + attribute(b"model", delimited(b"\x22", b"A"))
    first, second = read(DEVICE, data), read(DEVICE, data)
    assert first == second == {"name": "gpu-0", "attributes": {"model": {"string": "A"}}}
    first["attributes"]["model"]["string"] = "B"
    assert second["attributes"]["model"] == {"string": "A"}
    assert read(DEVICE, data) == second


def test_lists_within_a_map_are_not_shared() -> None:
    data = attribute(b"models", delimited(STRINGS, b"A") + delimited(STRINGS, b"B"))
    first, second = read(DEVICE, data), read(DEVICE, data)
    first["attributes"]["models"]["strings"].append("C")
    assert second == {"name": "", "attributes": {"models": {"strings": ["A", "B"]}}}


def test_entries_of_one_map_may_come_apart_and_twice_and_the_last_counts() -> None:
    one, two = delimited(b"\x22", b"A"), delimited(b"\x22", b"B")
    data = attribute(b"x", one) + attribute(b"y", one) + delimited(b"\x0a", b"gpu-0") + attribute(b"x", two)
    assert read(DEVICE, data) == {"name": "gpu-0", "attributes": {"x": {"string": "B"}, "y": {"string": "A"}}}


@pytest.mark.parametrize("size", [0, 1, 94, 95, 96, 127, 128, 300])
def test_short_and_long_entries_are_read_alike(size: int) -> None:
    text = b"x" * size
    for _ in range(2):
        assert read(CORE + "ConfigMap", delimited(b"\x12", entry(b"key", text))) == {
            "metadata": {},
            "data": {"key": text.decode()},
        }


def test_a_map_whose_tag_takes_two_bytes_is_read_to_its_end() -> None:
    number = next(n for n, field in message(CORE + "PodSpec").fields.items() if field.json_name == "overhead")
    assert number > 15
    one, two = entry(b"cpu", delimited(b"\x0a", b"1")), entry(b"memory", delimited(b"\x0a", b"1G"))
    data = delimited(tag(number, DELIMITED), one) + delimited(tag(number, DELIMITED), two)
    pod = read(CORE + "PodSpec", data)
    assert pod["overhead"] == {"cpu": "1", "memory": "1G"}


def test_more_distinct_entries_than_the_cache_holds_are_read() -> None:
    for i in range(5000):
        data = attribute(b"uuid", delimited(b"\x22", f"gpu-{i}".encode()))
        assert read(DEVICE, data) == {"name": "", "attributes": {"uuid": {"string": f"gpu-{i}"}}}


@pytest.mark.parametrize("cut", range(1, 9))
def test_an_entry_that_is_cut_off_is_malformed(cut: int) -> None:
    data = attribute(b"a", b"\x22\x01x")
    with pytest.raises(Malformed):
        read(DEVICE, data[:cut])
