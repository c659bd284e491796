import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.state.device_checkpoint import decode
from devlet.state.device_entry import Checkpoint, Encoder, Entry, Form, checksum, hash_text, validated

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


Resources = Mapping[str, tuple[str, ...] | None]

TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
IDS = st.none() | st.lists(TEXTS, max_size=3).map(tuple)
NODES = st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 12)
ENTRIES = st.builds(
    Entry,
    pod=TEXTS,
    container=TEXTS,
    resource=TEXTS,
    devices=st.none() | st.dictionaries(NODES, IDS, max_size=4),
    response=st.none() | st.binary(max_size=20),
)
REGISTERED = st.none() | st.dictionaries(TEXTS, IDS, max_size=4)

PLENTY = [Entry(f"uid-{i}", "main", "example.com/gpu", {0: (f"gpu-{i}",)}, bytes([i, 0, 255])) for i in range(200)]


def fresh(entries: list[Entry], registered: Resources | None) -> bytes:
    return Encoder().encode(entries, registered)


@pytest.mark.spec("DP-8.53")
@pytest.mark.spec("DP-8.63")
@given(st.lists(ENTRIES, max_size=5), REGISTERED)
def test_encoded_data_is_decoded_unchanged(entries: list[Entry], registered: Resources | None) -> None:
    found = decode(fresh(entries, registered))
    assert (found.entries, found.registered) == (tuple(entries) or None, registered)


@given(st.lists(ENTRIES, max_size=5), REGISTERED)
def test_the_checksum_is_that_of_the_plain_hash(entries: list[Entry], registered: Resources | None) -> None:
    written = json.loads(fresh(entries, registered))
    assert written["Checksum"] == checksum(Checkpoint(tuple(entries) or None, registered))


@given(st.lists(st.tuples(st.lists(st.sampled_from(range(8)), max_size=8), REGISTERED), max_size=12), st.data())
def test_an_encoder_returns_the_same_as_a_new_one(
    turns: list[tuple[list[int], Resources | None]], data: st.DataObject
) -> None:
    pool = data.draw(st.lists(ENTRIES, min_size=8, max_size=8))
    encoder = Encoder()
    for chosen, registered in turns:
        entries = [pool[number] for number in chosen]
        assert encoder.encode(entries, registered) == fresh(entries, registered)


def test_the_order_of_entries_is_kept() -> None:
    entries = PLENTY[:3]
    assert decode(fresh(entries[::-1], {})).entries == tuple(entries[::-1])
    assert fresh(entries, {}) != fresh(entries[::-1], {})


def test_removed_entries_are_dropped_from_the_cache() -> None:
    encoder = Encoder()
    for start in range(0, 10_000, 100):
        entries = [Entry(str(start + i), "c", "r", {}, b"") for i in range(100)]
        encoder.encode(entries, {})
    assert len(encoder._memory) <= 100 + 256
    assert encoder.encode(entries, {}) == fresh(entries, {})


def test_an_entry_is_not_confused_with_one_that_had_its_address() -> None:
    encoder = Encoder()
    for number in range(1_000):  # each is created at the address of the previous one
        entry = Entry(str(number), "c", "r", {}, b"")
        assert decode(encoder.encode([entry], {})).entries == (entry,)
        del entry


def test_the_caller_may_change_its_list_afterwards() -> None:
    encoder, entries, ids = Encoder(), list(PLENTY), ["a"]
    encoder.encode(entries, {"r": ids})
    del entries[10:20]
    ids.append("b")
    assert encoder.encode(entries, {"r": ids}) == fresh(entries, {"r": ("a", "b")})


def test_no_entries_are_null() -> None:
    assert Encoder().encode([], {}) == Encoder().encode(None, {})
    assert json.loads(Encoder().encode([], None))["Data"] == {"PodDeviceEntries": None, "RegisteredDevices": None}


def test_the_checksum_is_valid_for_names_that_are_not_utf8() -> None:
    entry = Entry("u", "c", "r", {0: ("bad\udcff",)}, b"")
    found = decode(fresh([entry], {"r\ud800": ("\udcff",)}))
    assert found.entries == (Entry("u", "c", "r", {0: ("bad\ufffd",)}, b""),)
    assert found.registered == {"r\ufffd": ("\ufffd",)}
