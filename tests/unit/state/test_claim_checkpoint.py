import json
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import StateCorrupt
from devlet.state import claim_checkpoint
from devlet.state.claim_checkpoint import (
    Checkpoint,
    ClaimEntry,
    Damage,
    Encoder,
    Failure,
    Form,
    PreparedDevice,
    attempts,
    decode,
    read,
)

Document = dict[str, Any]

TESTS = Path(__file__).parents[2]
FOUND = TESTS.parents[1] / "shared" / "spec" / "vectors" / "dra_manager_state_found.json"
VECTORS: list[Document] = json.loads((TESTS / "vectors" / "dra_manager_state.json").read_text("utf-8"))
if FOUND.is_file():  # files found in public places are not part of the project
    VECTORS += json.loads(FOUND.read_text("utf-8"))
VECTORS = [v for v in VECTORS if v["format"] != "dra_health_state"]
FORMS = {
    "legacy-1.27": Form.V1_27,
    "legacy-1.28": Form.V1_28,
    "legacy-1.30": Form.V1_30,
    "current-1.31": Form.V1_31,
    "current-1.35": Form.V1_31,
    "loader-edge-case": Form.V1_31,
}
VALID = [v for v in VECTORS if v["valid"]]
PRESENT = [v for v in VALID if v["format"].startswith("current")]

EMPTY_CHECKSUM = 4010664294
CLAIM = ClaimEntry(
    "uid",
    "claim",
    "ns",
    frozenset({"pod-1", "pod-2"}),
    {"gpu.example.com": (PreparedDevice("pool", "gpu-0", "share", ("main",), ("example.com/gpu=0",)),)},
)


def name(vector: Document) -> str:
    return str(vector["name"])


def blob(vector: Document) -> bytes:
    return str(vector["file_content"]).encode()


def stored_claims(vector: Document) -> list[Document]:
    """Encode with plain JSON."""
    outside = json.loads(vector["file_content"]) or {}
    if vector["format"].startswith("legacy"):
        return outside.get("entries") or []
    data = outside.get("Data") or outside.get("data") or "{}"
    return json.loads(data).get("ClaimInfoStateList") or []


def file(data: Any, checksum: int | None = None) -> bytes:
    """Return a file as another program would write it, with the correct checksum by default."""
    text = data if isinstance(data, str) else json.dumps(data)
    return json.dumps({"Data": text, "Checksum": crc32(text.encode()) if checksum is None else checksum}).encode()


def claims(*found: Document) -> bytes:
    return file({"ClaimInfoStateList": found})


@pytest.mark.spec("DN-4.05")
@pytest.mark.parametrize("vector", VECTORS, ids=name)
@pytest.mark.spec("DN-10.S1")
def test_a_file_is_accepted_exactly_if_the_kubelet_of_its_version_accepts_it(vector: Document) -> None:
    assert isinstance(read(blob(vector)), Checkpoint) is vector["valid"]


@pytest.mark.spec("DN-4.07")
@pytest.mark.parametrize("vector", VALID, ids=name)
def test_version_checksum_and_claims_are_decoded(vector: Document) -> None:
    found = decode(blob(vector))
    document = json.loads(vector["file_content"]) or {}
    assert found.verified
    assert found.checksum == document.get("Checksum", document.get("checksum", EMPTY_CHECKSUM))
    assert len(found.claims or ()) == vector.get("entries", len(stored_claims(vector)))
    if found.form is not FORMS[vector["format"]]:  # where handles are null 1.28 and 1.30 write the same
        assert not any(claim.get("ResourceHandles") for claim in stored_claims(vector))


@pytest.mark.parametrize("vector", VALID, ids=name)
def test_decoding_loses_nothing(vector: Document) -> None:
    for ours, theirs in zip(decode(blob(vector)).claims or (), stored_claims(vector), strict=True):
        assert (ours.uid, ours.name, ours.namespace) == (theirs["ClaimUID"], theirs["ClaimName"], theirs["Namespace"])
        assert ours.pods == (None if theirs.get("PodUIDs") is None else set(theirs["PodUIDs"]))
        ids = [cdi for found in (ours.drivers or {}).values() for d in found or () for cdi in d.cdi_devices or ()]
        if vector["format"].startswith("legacy"):
            assert ids == [cdi for names in (theirs["CDIDevices"] or {}).values() for cdi in names or ()]
            continue
        assert (ours.drivers or {}).keys() == (theirs.get("DriverState") or {}).keys()
        devices = [d for state in (theirs.get("DriverState") or {}).values() for d in state["Devices"] or ()]
        assert [
            (d.pool, d.device, d.share, _list(d.requests), _list(d.cdi_devices))
            for found in (ours.drivers or {}).values()
            for d in found or ()
        ] == [
            (d["PoolName"], d["DeviceName"], d.get("ShareID"), d.get("RequestNames"), d.get("CDIDeviceIDs"))
            for d in devices
        ]


def _list(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)


@pytest.mark.spec("DN-4.01")
@pytest.mark.spec("DN-4.02")
@pytest.mark.parametrize("vector", [v for v in PRESENT if v["format"] == "current-1.35"], ids=name)
def test_the_bytes_equal_those_of_the_kubelet(vector: Document) -> None:
    assert Encoder().encode(decode(blob(vector)).claims).decode() == vector["file_content"]


@pytest.mark.spec("DN-11.15")
@pytest.mark.parametrize("vector", VALID, ids=name)
def test_every_version_can_be_encoded_as_the_current_one(vector: Document) -> None:
    found = decode(blob(vector))
    again = decode(Encoder().encode(found.claims))
    assert (again.claims, again.form) == (found.claims, Form.V1_31)


@pytest.mark.spec("DN-4.03")
@pytest.mark.parametrize(
    "text", [b"{}", b"null", b' {"Extra":1}\n', b'{"Data":null,"Checksum":null}', b'{"Checksum":4010664294}']
)
def test_a_file_without_fields_is_an_empty_checkpoint(text: bytes) -> None:
    assert decode(text) == Checkpoint(None, Form.V1_31, EMPTY_CHECKSUM)


@pytest.mark.spec("DN-4.04")
def test_names_match_in_any_case_and_unknown_ones_are_ignored() -> None:
    text = json.dumps({"KIND": "x", "apiversion": "y", "claiminfostatelist": [{"CLAIMNAME": "c", "?": [1]}], "?": {}})
    blob = json.dumps({"dATA": text, "CHECKSUM": crc32(text.encode()), "?": None}).encode() + b" \r\n\t"
    assert decode(blob).claims == (ClaimEntry("", "c", "", None, None),)


@pytest.mark.spec("DN-4.02")
def test_the_checksum_covers_the_inner_document_unchanged() -> None:
    text = '{ "ClaimInfoStateList" : [ { "ClaimName" : "caf\\u00e9 é" } ] }'
    (claim,) = decode(file(text)).claims or ()
    assert claim.name == "café é"
    assert isinstance(read(file(text.replace(" :", ":"), crc32(text.encode()))), Damage)


def test_repeated_fields_are_merged_as_in_go() -> None:
    text = (
        '{"ClaimInfoStateList":[],"ClaimInfoStateList":[{"ClaimName":"a","claimname":null,"PodUIDs":{"p":{}},"poduids":'
        '{"q":null},"DriverState":{"d":null,"e":{}},"DriverState":{"f":{"Devices":[null,{"ShareID":"s","shareid":null}]}'
        "}}]}"
    )
    nothing = PreparedDevice("", "", None, None, None)
    assert decode(file(text)).claims == (
        ClaimEntry("", "a", "", frozenset({"p", "q"}), {"d": None, "e": None, "f": (nothing, nothing)}),
    )


@pytest.mark.spec("DN-4.05")
@pytest.mark.parametrize(
    ("blob", "reason"),
    [
        (b"", r"\(decode\): it is empty"),
        (b"[]", r"\(decode\): expected an object, found a list"),
        (b'{"Data":{}}', r"\(decode\): Data: expected a string, found an object"),
        (b'{"Checksum":-1}', r"Checksum: expected a non-negative integer of 32 bits, found the number -1"),
        (
            b'{"Checksum":4294967296}',
            r"Checksum: expected a non-negative integer of 32 bits, found the number 42949672",
        ),
        (b'{"Checksum":1}', r"\(checksum\): the checksum does not match: the file says 1, its data give 4010664294"),
        (file(""), r"\(decode\): Data: it is empty"),
        (file("{}x"), r"\(decode\): Data: it is not JSON at line 1, column 3"),
        (file({"kind": 5}), r"\(decode\): Data: expected a string, found the number 5"),
        (claims({"ClaimUID": 5}), r"Data.ClaimInfoStateList\[0\].ClaimUID: expected a string, found the number 5"),
        (claims({}, {"PodUIDs": ["p"]}), r"Data.ClaimInfoStateList\[1\].PodUIDs: expected an object, found a list"),
        (claims({"PodUIDs": {"p": 1}}), r"PodUIDs: expected an object, found the number 1"),
        (claims({"DriverState": {"d": {"Devices": {}}}}), r"DriverState.Devices: expected a list, found an object"),
        (claims({"DriverState": {"d": {"Devices": [{"ShareID": 1}]}}}), r"Devices.ShareID: expected a string, found"),
    ],
)
def test_the_reason_names_the_place(blob: bytes, reason: str) -> None:
    with pytest.raises(StateCorrupt, match=reason):
        decode(blob)


def test_a_file_with_a_wrong_checksum_keeps_its_content() -> None:
    wrong = read(Encoder().encode([CLAIM]).replace(b'"Checksum":', b'"Checksum":1', 1)[:-2] + b"}")
    assert isinstance(wrong, Damage) and wrong.data is not None
    assert (wrong.form, wrong.failure) == (Form.V1_31, Failure.CHECKSUM)
    assert (wrong.data.claims, wrong.data.verified) == ((CLAIM,), False)
    nonsense = read(file("nonsense", 1))
    assert isinstance(nonsense, Damage)
    assert (nonsense.failure, nonsense.data) == (Failure.CHECKSUM, None)


@pytest.mark.spec("DN-11.15")
def test_an_old_file_is_never_decoded_as_an_empty_one() -> None:
    old = {"version": "v1", "entries": [{"ClaimName": "c"}], "checksum": EMPTY_CHECKSUM}
    found = [result for result in attempts(json.dumps(old).encode()) if isinstance(result, Damage)]
    assert [result.form for result in found] == [Form.V1_30, Form.V1_28, Form.V1_27, Form.BETA]
    assert read(json.dumps(old).encode()) == found[0]


def test_a_version_field_next_to_data_does_not_make_a_file_old() -> None:
    document = json.loads(Encoder().encode([CLAIM])) | {"version": "v1", "entries": []}
    assert decode(json.dumps(document).encode()).claims == (CLAIM,)


@pytest.mark.parametrize("number", range(60))
def test_a_changed_byte_is_detected(number: int) -> None:
    blob = bytearray(Encoder().encode([CLAIM]))
    blob[number * len(blob) // 60] ^= 1
    found = read(bytes(blob))
    # Where it is the name of the data, there are none, and the checksum is not that of none.
    assert isinstance(found, Damage)


def test_the_size_of_a_file_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    blob = Encoder().encode([])
    monkeypatch.setattr(claim_checkpoint, "MAX_BYTES", len(blob) - 1)
    with pytest.raises(StateCorrupt, match=f"it has {len(blob)} bytes, more than {len(blob) - 1}"):
        decode(blob)


@given(
    st.binary(max_size=60)
    | st.text(alphabet='{}[]":,0123456789eE.-+ \\uDatChecksmversionti', max_size=60).map(str.encode)
)
def test_any_bytes_are_accepted_or_refused(blob: bytes) -> None:
    assert isinstance(read(blob), Checkpoint | Damage)


@given(st.integers(0, 400), st.binary(min_size=1, max_size=3))
def test_a_partly_overwritten_file_is_accepted_or_refused(position: int, garbage: bytes) -> None:
    blob = bytearray(Encoder().encode([CLAIM, CLAIM]))
    blob[position : position + len(garbage)] = garbage
    assert isinstance(read(bytes(blob)), Checkpoint | Damage)


NAMES = st.sampled_from(
    "Data Checksum version entries ClaimInfoStateList ClaimUID PodUIDs DriverState Devices ShareID RequestNames"
    " CDIDevices ResourceHandles structuredData kind".split()
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**32) | st.sampled_from(["", "v1", "{}", "null"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(NAMES, JSON, max_size=4), st.dictionaries(NAMES, JSON, max_size=4))
def test_any_json_is_accepted_or_refused(outside: Document, inside: Document) -> None:
    assert isinstance(read(json.dumps(outside).encode()), Checkpoint | Damage)
    assert isinstance(read(file(inside)), Checkpoint | Damage)
