import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.state.device_checkpoint import Encoder, Entry, decode
from devlet.state.device_entry import Checkpoint, checksum

Registered = Mapping[str, tuple[str, ...] | None]

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


def fresh(entries: list[Entry], registered: Registered | None) -> bytes:
    return Encoder().encode(entries, registered)


@pytest.mark.spec("DP-8.53")
@pytest.mark.spec("DP-8.63")
@given(st.lists(ENTRIES, max_size=5), REGISTERED)
def test_encoded_data_is_decoded_unchanged(entries: list[Entry], registered: Registered | None) -> None:
    found = decode(fresh(entries, registered))
    assert (found.entries, found.registered) == (tuple(entries) or None, registered)


@given(st.lists(ENTRIES, max_size=5), REGISTERED)
def test_the_checksum_is_that_of_the_plain_hash(entries: list[Entry], registered: Registered | None) -> None:
    written = json.loads(fresh(entries, registered))
    assert written["Checksum"] == checksum(Checkpoint(tuple(entries) or None, registered))


@given(st.lists(st.tuples(st.lists(st.sampled_from(range(8)), max_size=8), REGISTERED), max_size=12), st.data())
def test_an_encoder_returns_the_same_as_a_new_one(
    turns: list[tuple[list[int], Registered | None]], data: st.DataObject
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
