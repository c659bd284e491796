from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.state.device_entry import Checkpoint, Entry, Form, checksum, hash_text, validated

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


NAMES = st.sampled_from(["", "a", "b"])
ENTRIES = st.builds(
    Entry,
    NAMES,
    NAMES,
    st.sampled_from(["r.io/x", "r.io/y"]),
    st.none() | st.dictionaries(st.integers(-1, 1), st.none() | st.lists(NAMES).map(tuple)),
    st.none(),
)


def entry(pod: str, *ids: str, container: str = "main", resource: str = "r.io/x") -> Entry:
    return Entry(pod, container, resource, {0: ids}, None)


def test_a_valid_checkpoint_is_returned_unchanged() -> None:
    entries = (entry("a", "0"), entry("a", "0", container="next"), entry("b", "0", resource="r.io/y"), entry("b", "1"))
    found = Checkpoint(entries, {"r.io/x": ("0",)})
    assert validated(found).checkpoint is found
    assert validated(found).faults == ()


@pytest.mark.parametrize(
    ("entries", "left", "fault"),
    [
        ([entry("a", "", "0")], [entry("a", "0")], "a device of pod a, container main, r.io/x, has no name"),
        ([entry("", "0"), entry("a", "0")], [entry("a", "0")], "an entry of r.io/x names no pod"),
        (
            [entry("a", "0"), entry("b", "0", "1")],
            [entry("a", "0"), entry("b", "1")],
            "device 0 of r.io/x is held twice: by pod a, container main, and by pod b, container main",
        ),
    ],
)
def test_faults_are_removed_and_named(entries: list[Entry], left: list[Entry], fault: str) -> None:
    found = validated(Checkpoint(tuple(entries), {}))
    assert found.checkpoint.entries == tuple(left)
    assert found.faults == (fault,)


@given(st.none() | st.lists(ENTRIES).map(tuple))
def test_a_validated_checkpoint_is_valid_and_every_device_still_has_an_owner(entries: tuple[Entry, ...] | None) -> None:
    found = validated(Checkpoint(entries, {}))
    assert validated(found.checkpoint).faults == ()
    assert _held(found.checkpoint.entries) == _held([each for each in entries or () if each.pod])


def _held(entries: object) -> set[tuple[str, str]]:
    return {
        (each.resource, id)
        for each in entries or ()  # type: ignore[attr-defined]
        for ids in (each.devices or {}).values()
        for id in ids or ()
        if id
    }
