import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.state import device_salvage
from devlet.state.device_checkpoint import Checkpoint, Encoder, Entry, Form
from devlet.state.device_salvage import salvage

ENTRIES = [
    Entry(f"uid-{i}", "main", "example.com/gpu", {0: (f"gpu-{i}",), 1: (f"nic-{i}",)}, b"\n\0") for i in range(5)
]
REGISTERED = {"example.com/gpu": ("gpu-0", "gpu-1"), "example.com/nic": ("nic-0",)}
WHOLE = Encoder().encode(ENTRIES, REGISTERED)


def test_an_intact_file_is_recovered_completely() -> None:
    assert salvage(WHOLE) == device_salvage.Salvage(Checkpoint(tuple(ENTRIES), REGISTERED))


@pytest.mark.parametrize("device_ids", [{"0": ["d"]}, ["d"]])
def test_a_wrong_checksum_loses_nothing(device_ids: Any) -> None:
    entry = {"PodUID": "u", "ContainerName": "c", "ResourceName": "r", "DeviceIDs": device_ids, "AllocResp": ""}
    document = {"Data": {"PodDeviceEntries": [entry], "RegisteredDevices": {"r": ["d"]}}, "Checksum": 1}
    found = salvage(json.dumps(document).encode())
    node = 0 if isinstance(device_ids, dict) else -1
    assert found.checkpoint.entries == (Entry("u", "c", "r", {node: ("d",)}, b""),)
    assert (found.checkpoint.registered, found.lost) == ({"r": ("d",)}, ())


@given(st.integers(0, len(WHOLE) - 1))
def test_complete_entries_of_a_truncated_file_are_recovered(length: int) -> None:
    found = salvage(WHOLE[:length])
    complete = [entry for entry in ENTRIES if WHOLE.index(b"}", WHOLE.index(b"AllocResp", _start(entry))) < length]
    assert found.checkpoint.entries == (tuple(complete) or None)
    assert dict(found.checkpoint.registered or {}).items() <= REGISTERED.items()


def _start(entry: Entry) -> int:
    return WHOLE.index(b'{"PodUID":"%b"' % entry.pod.encode())


def test_a_truncated_entry_is_listed_as_lost() -> None:
    found = salvage(WHOLE[: WHOLE.index(b"gpu-3")])
    assert found.checkpoint.entries == tuple(ENTRIES[:3])
    assert found.lost == (
        f"an entry of pod uid-3 at character {_start(ENTRIES[3])}: the file ends before it does",
        "the registered resources",
    )


def test_registered_resources_are_recovered_up_to_the_damage() -> None:
    cut = salvage(WHOLE[: WHOLE.rindex(b'"nic-0"')])
    assert cut.checkpoint.entries == tuple(ENTRIES)
    assert cut.checkpoint.registered == {"example.com/gpu": ("gpu-0", "gpu-1")}
    assert len(cut.lost) == 1 and cut.lost[0].startswith("registered resources from character ")


def test_entries_after_the_damage_are_recovered() -> None:
    blob = WHOLE.replace(b'"uid-1","ContainerName"', b'"uid-1"\0\0\0\0\0erName"')
    found = salvage(blob)
    assert found.checkpoint.entries == (ENTRIES[0], *ENTRIES[2:])
    assert found.checkpoint.registered == REGISTERED
    (lost,) = found.lost
    assert lost.startswith("an entry of pod uid-1 at character") and "not JSON at character" in lost


def test_an_invalid_entry_does_not_affect_the_others() -> None:
    blob = WHOLE.replace(b'"CgA="', b'"C*A="', 1)
    found = salvage(blob)
    assert found.checkpoint.entries == tuple(ENTRIES[1:])
    assert found.checkpoint.form is Form.V2
    (lost,) = found.lost
    assert lost.endswith("AllocResp: expected padded base64 in the standard alphabet")


def test_a_damaged_field_name_does_not_lose_its_content() -> None:
    found = salvage(WHOLE.replace(b"PodDeviceEntries", b"PodDeviceXntries"))
    assert (found.checkpoint.entries, found.checkpoint.registered) == (tuple(ENTRIES), REGISTERED)
    found = salvage(WHOLE.replace(b"RegisteredDevices", b"RegisteredXevices"))
    assert found.checkpoint.entries == tuple(ENTRIES)
    assert found.lost == ("the registered resources",)


def test_a_repeated_entry_is_recovered_once() -> None:
    found = salvage(WHOLE[:-20] + WHOLE)
    assert found.checkpoint.entries == tuple(ENTRIES)
    assert len(found.lost) == len(ENTRIES)
    assert found.lost[0] == "a second entry of pod uid-0, container main, example.com/gpu"


@pytest.mark.parametrize("blob", [b"", b"{}", b"\0" * 1000, b'{"Data":{', b'{"a":' * 5000, b"[" * 5000])
def test_nothing_is_recovered_from_an_unreadable_file(blob: bytes) -> None:
    assert salvage(blob).is_empty


def test_after_too_much_damage_the_rest_is_skipped() -> None:
    found = salvage(b'{"a' * 2_000 + WHOLE[1:])
    assert any("more than 1000 places are damaged" in line for line in found.lost)


@given(st.integers(0, len(WHOLE) - 1), st.binary(max_size=12))
def test_recovered_content_is_in_the_damaged_file(position: int, garbage: bytes) -> None:
    found = salvage(WHOLE[:position] + garbage + WHOLE[position + len(garbage) :])
    kept = found.checkpoint.entries or ()
    assert sum(entry in ENTRIES for entry in kept) >= len(ENTRIES) - 2


def test_entries_of_the_oldest_versions_are_recovered_up_to_the_damage() -> None:
    def cut(ids: list[dict[str, Any]]) -> tuple[Entry, ...] | None:
        owner = {"PodUID": "u", "ContainerName": "c", "ResourceName": "r"}
        return salvage(json.dumps({"Entries": [owner | each for each in ids]}).encode()[:-3]).checkpoint.entries

    assert cut([{"DeviceID": "d"}, {"DeviceID": "e"}, {"DeviceID": "f"}]) == (
        Entry("u", "c", "r", {-1: ("d", "e")}, None),
    )
    assert cut([{"DeviceIDs": ["d", "e"]}, {"DeviceIDs": ["f"]}]) == (Entry("u", "c", "r", {-1: ("d", "e")}, None),)
