import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import StateCorrupt
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.plugins.devices import Grant
from devlet.plugins.grants import decode, encode

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
maps = st.dictionaries(text, text, max_size=4)
some = Grant(
    env={"B": "2", "A": "1"},
    mounts=(Mount("/in", "/out", True), Mount("/x", "/y")),
    devices=(DeviceNode("/dev/a", "/dev/b", "rwm"),),
    annotations={"k": "v"},
    cdi_devices=("vendor.com/gpu=0",),
)


@given(
    st.builds(
        Grant,
        env=maps,
        mounts=st.lists(st.builds(Mount, text, text, st.booleans()), max_size=3).map(tuple),
        devices=st.lists(st.builds(DeviceNode, text, text, text), max_size=3).map(tuple),
        annotations=maps,
        cdi_devices=st.lists(text, max_size=3).map(tuple),
    )
)
def test_a_decoded_grant_equals_the_encoded_one(grant: Grant) -> None:
    assert decode(encode(grant)) == grant


def test_a_grant_is_encoded_as_the_message_of_the_device_plugin_api() -> None:
    assert encode(some) == (
        b"\x0a\x06\x0a\x01A\x12\x011\x0a\x06\x0a\x01B\x12\x012"
        b"\x12\x0d\x0a\x03/in\x12\x04/out\x18\x01\x12\x08\x0a\x02/x\x12\x02/y"
        b"\x1a\x15\x0a\x06/dev/a\x12\x06/dev/b\x1a\x03rwm"
        b"\x22\x06\x0a\x01k\x12\x01v"
        b"\x2a\x12\x0a\x10vendor.com/gpu=0"
    )


def test_equal_grants_have_equal_bytes_whatever_the_order_of_their_maps() -> None:
    names = [f"N{number}" for number in range(50)]
    one, other = Grant(env=dict.fromkeys(names, "v")), Grant(env=dict.fromkeys(reversed(names), "v"))
    assert encode(one) == encode(other)
    assert list(decode(encode(other)).env) == sorted(names)


def test_an_empty_grant_has_no_bytes() -> None:
    assert encode(Grant()) == b""
    assert decode(b"") == Grant()


@pytest.mark.parametrize("blob", [b"\x0a", encode(some)[:-1], b"\x2a\x03\x0a\x01\xff"])
def test_bytes_that_are_cut_or_not_utf8_are_corrupt(blob: bytes) -> None:
    with pytest.raises(StateCorrupt, match="stored answer of a device plugin cannot be decoded"):
        decode(blob)


def test_fields_of_a_later_version_are_skipped() -> None:
    assert decode(encode(some) + b"\xa2\x06\x03new") == some
