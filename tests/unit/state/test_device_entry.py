from collections.abc import Mapping

from devlet.state.device_entry import Checkpoint, Entry, Form, checksum, hash_text

Registered = Mapping[str, tuple[str, ...] | None] | None

ENTRY = Entry("uid", "main", "example.com/gpu", {10: ("c",), -1: ("a", "b"), 2: None}, b"\n\0")


def test_the_hash_text_of_the_present_version_sorts_nodes_by_number_and_resources_by_name() -> None:
    text = hash_text(Checkpoint((ENTRY,), {"b/x": (), "B/x": ("1", "2"), "é/x": None}))
    assert text.decode() == (
        "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)[{PodUID:(string)uid"
        " ContainerName:(string)main ResourceName:(string)example.com/gpu"
        " DeviceIDs:(checkpoint.DevicesPerNUMA)map[-1:[a b] 2:<nil> 10:[c]] AllocResp:([]uint8)[10 0]}]"
        " RegisteredDevices:(map[string][]string)map[B/x:[1 2] b/x:[] é/x:<nil>]}"
    )


def test_the_hash_text_of_v1_has_a_list_of_devices() -> None:
    entry = Entry("uid", "main", "r/x", {-1: ("a", "b")}, None)
    nothing = Entry("uid", "main", "r/x", None, b"")
    text = hash_text(Checkpoint((entry, nothing), None, Form.V1)).decode()
    assert "DeviceIDs:([]string)[a b] AllocResp:([]uint8)<nil>} {PodUID" in text
    assert "DeviceIDs:([]string)<nil> AllocResp:([]uint8)[]}]" in text


def test_null_and_empty_have_different_checksums() -> None:
    nothing: list[Registered] = [None, {}]
    found = {checksum(Checkpoint(entries, registered)) for entries in (None, ()) for registered in nothing}
    assert found >= {3467439661, 2932075448, 1944006890}
    assert len(found) == 4
