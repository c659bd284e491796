import json

import pytest

from devlet.cli.checkpoint_formats import FORMATS, DeviceManagerFormat, recognised
from devlet.errors import InvalidInput, StateCorrupt
from devlet.state.device_checkpoint import Encoder, Entry, decode

DEVICES = DeviceManagerFormat()
WHOLE = Encoder().encode([Entry("u", "c", "r.io/x", {0: ("d",)}, None)], {"r.io/x": ["d"]})


@pytest.mark.parametrize(
    "blob",
    [WHOLE, WHOLE[:40], b'{"Checksum":2932075448}', b'{"Entries":[]}', WHOLE.lower(), b'\0\0"PodDeviceEntries"\0'],
)
def test_a_device_checkpoint_is_recognised_even_if_it_is_damaged(blob: bytes) -> None:
    assert recognised(blob, None).name == "kubelet_internal_checkpoint"


@pytest.mark.parametrize("blob", [b"", b" ", b"{}", b'{"Data":"{}","Checksum":1}', b"\0"])
def test_what_is_not_recognised_can_be_named(blob: bytes) -> None:
    with pytest.raises(InvalidInput, match="say which with --format"):
        recognised(blob, None)
    assert recognised(blob, "kubelet_internal_checkpoint") is FORMATS["kubelet_internal_checkpoint"]


def test_a_verdict_names_the_version() -> None:
    assert DEVICES.verify(WHOLE).text.startswith("v2: valid, checksum ")
    raw: dict[str, object] = {"PodDeviceEntries": [], "RegisteredDevices": {}}
    assert DEVICES.verify(json.dumps(raw).encode()).text == "raw: valid, no checksum, 0 entries, 0 resources"
    assert DEVICES.verify(b'{"Entries":[]}').text == "1.8: valid, no checksum, 0 entries, 0 resources"


def test_a_verdict_on_an_old_file_says_why_it_is_neither_old_nor_new() -> None:
    document = {"Data": {"PodDeviceEntries": [{"DeviceIDs": ["d"]}], "RegisteredDevices": {}}, "Checksum": 1}
    verdict = DEVICES.verify(json.dumps(document).encode())
    assert not verdict.valid
    assert verdict.text.startswith(
        "damaged (decode): Data.PodDeviceEntries[0].DeviceIDs: expected an object, found a list;"
        " as v1: the checksum does not match: the file says 1, its data give "
    )


def test_a_rescue_has_a_file_that_can_be_read() -> None:
    rescue = DEVICES.rescue(WHOLE[:-10])
    assert decode(rescue.content) == decode(WHOLE)
    assert (rescue.kept, rescue.lost) == ("1 entry, 1 resource", ())
    assert DEVICES.rescue(b"\0\0").content == b""


def test_what_is_damaged_is_neither_shown_nor_converted() -> None:
    for act in (DEVICES.document, DEVICES.convert, lambda blob: list(DEVICES.table(blob, wide=False))):
        with pytest.raises(StateCorrupt):
            act(WHOLE[:-1])
