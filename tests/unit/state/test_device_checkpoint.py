import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import StateCorrupt
from devlet.state import device_checkpoint
from devlet.state.device_checkpoint import (
    Checkpoint,
    Damage,
    Encoder,
    Entry,
    Failure,
    Form,
    attempts,
    checksum,
    decode,
    hash_text,
    read,
)

Document = dict[str, Any]

TESTS = Path(__file__).parents[2]
FOUND = TESTS.parents[1] / "shared" / "spec" / "vectors" / "device_manager_checkpoints_found.json"
VECTORS: list[Document] = json.loads((TESTS / "vectors" / "device_manager_checkpoints.json").read_text("utf-8"))
if FOUND.is_file():  # files found in public places are not part of the project
    VECTORS += json.loads(FOUND.read_text("utf-8"))
WRITTEN = [v for v in VECTORS if "writer" in v["origin"] and v["format"] == "v2" and v["valid"]]


def name(vector: Document) -> str:
    return str(vector["name"])


def judged(vector: Document) -> Checkpoint | Damage:
    """Decode as the version of the vector. Without entries, v1 and v2 files are identical, and v2 is tried first."""
    results = {result.form: result for result in attempts(vector["file_content"].encode())}
    return results.get(Form(vector["format"])) or results[Form.V2]


def file(entries: Any, registered: Any = None, *, number: int | None = None, v1: bool = False) -> bytes:
    """Return a file as another program would write it, with the correct checksum by default."""
    document = {"Data": {"PodDeviceEntries": entries, "RegisteredDevices": registered or {}}, "Checksum": number or 0}
    found = next(r for r in attempts(json.dumps(document).encode()) if r.form is (Form.V1 if v1 else Form.V2))
    if number is None and isinstance(found, Damage) and found.data:
        document["Checksum"] = checksum(found.data)
    return json.dumps(document).encode()


def entry(**members: Any) -> Document:
    return {"PodUID": "u", "ContainerName": "c", "ResourceName": "r.io/x", "DeviceIDs": {"0": ["d"]}} | members


@pytest.mark.parametrize("vector", VECTORS, ids=name)
def test_a_file_is_accepted_exactly_if_the_kubelet_accepts_it(vector: Document) -> None:
    found = judged(vector)
    assert isinstance(found, Checkpoint) is vector["valid"]
    assert (found.failure if isinstance(found, Damage) else None) == vector["failure"]


@pytest.mark.parametrize("vector", [v for v in VECTORS if v["hash_text"] is not None], ids=name)
def test_text_and_checksum_equal_those_of_the_kubelet(vector: Document) -> None:
    found = judged(vector)
    data = found.data if isinstance(found, Damage) else found
    assert data is not None
    assert hash_text(data).decode() == vector["hash_text"]
    assert checksum(data) == vector["checksum"]


@pytest.mark.parametrize("vector", WRITTEN, ids=name)
def test_the_bytes_equal_those_of_the_kubelet(vector: Document) -> None:
    found = decode(vector["file_content"].encode())
    expected = vector["file_content"]
    if found.entries == ():  # the kubelet's manager never writes an empty list, and neither do we
        expected = '{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":3467439661}'
    assert Encoder().encode(found.entries, found.registered).decode() == expected


@pytest.mark.spec("DP-8.66")
@pytest.mark.spec("DP-9.14")
@pytest.mark.parametrize("vector", [v for v in VECTORS if v["format"] == "v1" and v["checksum"]], ids=name)
def test_devices_of_v1_files_have_no_node(vector: Document) -> None:
    found = decode(vector["file_content"].encode())
    stored = json.loads(vector["file_content"])["Data"]["PodDeviceEntries"]
    assert [(e.pod, e.container, e.resource) for e in found.entries or ()] == [
        (e["PodUID"], e["ContainerName"], e["ResourceName"]) for e in stored or ()
    ]
    for ours, theirs in zip(found.entries or (), stored or (), strict=True):
        ids = theirs["DeviceIDs"]
        assert ours.devices == (None if ids is None else {-1: tuple(ids)})
        assert ours.response == (None if theirs["AllocResp"] is None else base64.b64decode(theirs["AllocResp"]))
    assert decode(Encoder().encode(found.entries, found.registered)).entries == (found.entries or None)


@pytest.mark.spec("DP-9.14")
def test_files_of_1_9_are_decoded_without_a_checksum() -> None:
    document = {
        "PodDeviceEntries": [entry(DeviceIDs=["d1", "d2"], AllocResp="CgA=")],
        "RegisteredDevices": {"r.io/x": ["d1"]},
    }
    assert decode(json.dumps(document).encode()) == Checkpoint(
        (Entry("u", "c", "r.io/x", {-1: ("d1", "d2")}, b"\n\0"),), {"r.io/x": ("d1",)}, Form.RAW
    )


@pytest.mark.spec("DP-9.14")
def test_files_of_1_8_have_one_entry_per_device_and_no_responses() -> None:
    owners = [("u1", "c"), ("u2", "c"), ("u1", "c")]
    entries = [
        {"PodUID": pod, "ContainerName": container, "ResourceName": "r.io/x", "DeviceID": f"d{i}"}
        for i, (pod, container) in enumerate(owners)
    ]
    assert decode(json.dumps({"Entries": entries}).encode()) == Checkpoint(
        (Entry("u1", "c", "r.io/x", {-1: ("d0", "d2")}, None), Entry("u2", "c", "r.io/x", {-1: ("d1",)}, None)),
        {},
        Form.V1_8,
    )


def test_files_of_builds_between_1_8_and_1_9_have_lists_and_responses() -> None:
    """The only field that they share with 1.8 is `Entries`."""
    entry = {"PodUID": "u", "ContainerName": "c", "ResourceName": "r.io/x", "DeviceIDs": ["d0", "d1"]}
    response = base64.b64encode(b"\x0a\x00").decode()
    assert decode(json.dumps({"Entries": [entry | {"AllocResp": response}, entry | {"PodUID": "v"}]}).encode()) == (
        Checkpoint(
            (
                Entry("u", "c", "r.io/x", {-1: ("d0", "d1")}, b"\x0a\x00"),
                Entry("v", "c", "r.io/x", {-1: ("d0", "d1")}, None),
            ),
            {},
            Form.V1_9_ALPHA,
        )
    )


def test_an_entry_without_devices_fits_no_version() -> None:
    entry = {"PodUID": "u", "ContainerName": "c", "ResourceName": "r.io/x"}
    found = list(attempts(json.dumps({"Entries": [entry | {"DeviceIDs": ["d"]}, entry]}).encode()))
    assert [(each.form, each.reason) for each in found if isinstance(each, Damage)][2:] == [
        (Form.V1_8, "Entries[0]: it has no DeviceID"),
        (Form.V1_9_ALPHA, "Entries[1]: it has no DeviceIDs"),
    ]


@pytest.mark.parametrize("form", [Form.V2, Form.V1])
def test_a_file_with_a_wrong_checksum_is_legible(form: Form) -> None:
    ids: Any = {"0": ["d"]} if form is Form.V2 else ["d"]
    data = {"PodDeviceEntries": [{"PodUID": "u", "DeviceIDs": ids}], "RegisteredDevices": {}}
    found = device_checkpoint.legible(json.dumps({"Data": data, "Checksum": 1}).encode())
    assert found.form is form
    assert found.entries == (Entry("u", "", "", {0 if form is Form.V2 else -1: ("d",)}, None),)
    with pytest.raises(StateCorrupt, match="not JSON"):
        device_checkpoint.legible(b"{")


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"Checksum": 1, "Entries": []},
        {"Checksum": 1, "PodDeviceEntries": []},
        {"Data": {}, "PodDeviceEntries": [], "RegisteredDevices": {}},
        {"Entries": [{"PodUID": 5}]},
        {"PodDeviceEntries": [{"DeviceIDs": {"0": ["d"]}}]},
    ],
)
def test_a_file_with_a_checksum_or_another_shape_is_not_an_old_one(document: Document) -> None:
    assert isinstance(read(json.dumps(document).encode()), Damage)


@pytest.mark.spec("DP-8.64")
def test_a_wrong_checksum_is_reported_with_both_numbers() -> None:
    found = read(file([entry()], number=1))
    assert isinstance(found, Damage)
    assert (found.form, found.failure) == (Form.V2, Failure.CHECKSUM)
    assert found.data is not None
    assert found.reason == f"the checksum does not match: the file says 1, its data give {checksum(found.data)}"


@pytest.mark.spec("DP-8.63")
@pytest.mark.parametrize("number", range(40))
def test_a_changed_byte_is_detected(number: int) -> None:
    blob = bytearray(Encoder().encode([Entry("uid", "main", "r.io/x", {0: ("d",)}, b"\n\0")], {"r.io/x": ["d"]}))
    position = number * len(blob) // 40
    blob[position] ^= 1
    try:
        found = decode(bytes(blob))
    except StateCorrupt:
        return
    # Names match in any case and unknown ones are ignored, so some changes leave what the file says as it is.
    assert found.entries and found.entries[0].pod == "uid"


@pytest.mark.parametrize(
    ("blob", "reason"),
    [
        (b"", r"\(decode\): it is empty"),
        (b"null", r"\(decode\): expected an object, found null"),
        (b"[]", r"\(decode\): expected an object, found a list"),
        (file([entry(), entry(DeviceIDs=["d"])]), r"Data.PodDeviceEntries\[1\].DeviceIDs: expected an object, found a"),
        (file([entry(DeviceIDs={"zero": []})]), r"\[0\].DeviceIDs: expected integers of 64 bits as keys, found 'zero'"),
        (file([entry(AllocResp="***")]), r"Data.PodDeviceEntries\[0\].AllocResp: expected padded base64"),
        (file(None, {"r": "d"}), r"Data.RegisteredDevices: expected a list, found a string"),
        (b'{"Checksum":"1"}', r"Checksum: expected a non-negative integer of 64 bits, found a string"),
        (b'{"Data":5}', r"Data: expected an object, found the number 5"),
    ],
)
def test_the_reason_names_the_place(blob: bytes, reason: str) -> None:
    with pytest.raises(StateCorrupt, match=reason):
        decode(blob)


def test_the_error_for_a_file_of_no_version_is_that_of_the_current_one() -> None:
    blob = file([entry(DeviceIDs=["d"])], number=7)
    found = [r for r in attempts(blob) if isinstance(r, Damage)]
    assert [(r.form, r.failure) for r in found] == [(Form.V2, Failure.DECODE), (Form.V1, Failure.CHECKSUM)]
    assert read(blob) == found[0]


def test_repeated_fields_are_merged_as_in_go() -> None:
    text = (
        '{"Data":{"PodDeviceEntries":[{"PodUID":"a","poduid":null,"DeviceIDs":{"0":["x"]},"deviceids":{"+0":["y"],'
        '"1":[null]},"AllocResp":"CgA=","AllocResp":null}],"RegisteredDevices":{"a":[]}},"Data":{"RegisteredDevices":'
        '{"b":null}}}'
    )
    (found, *_) = attempts(text.encode())
    assert isinstance(found, Damage) and found.data is not None
    assert found.data.entries == (Entry("a", "", "", {0: ("y",), 1: ("",)}, None),)
    assert found.data.registered == {"a": (), "b": None}


def test_the_size_of_a_file_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    blob = Encoder().encode(None, {})
    monkeypatch.setattr(device_checkpoint, "MAX_BYTES", len(blob) - 1)
    with pytest.raises(StateCorrupt, match=f"it has {len(blob)} bytes, more than {len(blob) - 1}"):
        decode(blob)


@given(
    st.binary(max_size=60) | st.text(alphabet='{}[]":,0123456789eE.-+ \\uDatChecksmPRgi', max_size=60).map(str.encode)
)
def test_any_bytes_are_accepted_or_refused(blob: bytes) -> None:
    assert isinstance(read(blob), Checkpoint | Damage)


@given(st.integers(0, 400), st.binary(min_size=1, max_size=3))
def test_a_partly_overwritten_file_is_accepted_or_refused(position: int, garbage: bytes) -> None:
    blob = bytearray(file([entry(), entry(AllocResp="CgA=")], {"r.io/x": ["d"]}))
    blob[position : position + len(garbage)] = garbage
    assert isinstance(read(bytes(blob)), Checkpoint | Damage)
