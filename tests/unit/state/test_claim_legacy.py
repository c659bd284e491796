import json
from typing import Any

import pytest

from devlet.state import claim_legacy, go_json
from devlet.state.claim_checkpoint import Checkpoint, ClaimEntry, Damage, Form, PreparedDevice, decode, read
from devlet.state.claim_legacy import Handle, LegacyEntry, LegacyFile, checksum, hash_text

Document = dict[str, Any]

ENTRY = LegacyEntry(
    "d.example.com",
    "class",
    "uid",
    "claim",
    "ns",
    frozenset({"b", "a"}),
    (Handle("d.example.com", '{"a": 1}'), Handle()),
    {"y.example.com": ("v/c=2", "v/c=1"), "x.example.com": None, "z.example.com": ()},
)
STRUCTURED: Document = {"vendorClassParameters": None, "results": []}


def entry(**members: Any) -> Document:
    return {"DriverName": "d", "ClassName": "k", "ClaimUID": "u", "ClaimName": "c", "Namespace": "n"} | members


def blob(*entries: Document, form: Form | None = None) -> bytes:
    """Return the file with the checksum of this form, or a wrong one."""
    document = {"version": "v1", "entries": list(entries), "checksum": 1}
    if form is not None:
        parsed = go_json.parse(json.dumps(document).encode())
        document["checksum"] = checksum(claim_legacy.read(parsed, form))
    return json.dumps(document).encode()


@pytest.mark.spec("DN-4.07")
@pytest.mark.parametrize(
    ("form", "handles"),
    [
        (Form.V1_27, ""),
        (
            Form.V1_28,
            ' ResourceHandles:([]v1alpha2.ResourceHandle)[{DriverName:(string)d.example.com Data:(string){"a": 1}}'
            " {DriverName:(string) Data:(string)}]",
        ),
        (
            Form.V1_30,
            ' ResourceHandles:([]v1alpha2.ResourceHandle)[{DriverName:(string)d.example.com Data:(string){"a": 1}'
            " StructuredData:(*v1alpha2.StructuredResourceHandle)<nil>} {DriverName:(string) Data:(string)"
            " StructuredData:(*v1alpha2.StructuredResourceHandle)<nil>}]",
        ),
    ],
)
def test_the_hash_text_of_a_version(form: Form, handles: str) -> None:
    assert hash_text(LegacyFile(form, entries=(ENTRY,))).decode() == (
        "(*state.DRAManagerCheckpoint){Version:(string)v1 Entries:(state.ClaimInfoStateList)[{DriverName:(string)"
        "d.example.com ClassName:(string)class ClaimUID:(types.UID)uid ClaimName:(string)claim Namespace:(string)ns"
        f" PodUIDs:(sets.Set[string])map[a:{{}} b:{{}}]{handles} CDIDevices:(map[string][]string)map["
        "x.example.com:<nil> y.example.com:[v/c=2 v/c=1] z.example.com:[]]}] Checksum:(checksum.Checksum)0}"
    )


@pytest.mark.spec("DN-4.07")
def test_null_empty_and_missing_entries_are_hashed_as_go_does() -> None:
    assert checksum(LegacyFile(Form.V1_30)) == 991151041
    assert b"ClaimInfoStateList)[] Checksum" in hash_text(LegacyFile(Form.V1_30))
    assert b"ClaimInfoStateList)<nil> Checksum" in hash_text(LegacyFile(Form.V1_30, entries=None))
    nothing = LegacyEntry("", "", "", "", "", None, None, None)
    text = hash_text(LegacyFile(Form.V1_30, entries=(nothing,)))
    assert text.count(b"<nil>") == 3


@pytest.mark.spec("DN-4.08")
@pytest.mark.parametrize("form", [Form.V1_30, Form.V1_28, Form.V1_27])
def test_a_file_may_have_the_checksum_of_any_of_the_versions(form: Form) -> None:
    found = read(blob(entry(ResourceHandles=[{"driverName": "d", "data": "x"}]), form=form))
    assert isinstance(found, Checkpoint)
    assert (found.form, found.verified) == (form, True)


@pytest.mark.spec("DN-4.08")
def test_structured_data_are_read_but_not_verified() -> None:
    handles = [{"driverName": "d", "structuredData": STRUCTURED}]
    found = decode(blob(entry(ResourceHandles=handles)))
    assert (found.form, found.verified, found.checksum) == (Form.V1_30, False, 1)
    without = read(blob(entry(ResourceHandles=[{"driverName": "d", "structuredData": None}])))
    assert isinstance(without, Damage)


@pytest.mark.spec("DN-4.10")
def test_files_of_betas_have_a_list_of_cdi_devices_and_are_not_verified() -> None:
    found = decode(blob({"DriverName": "d", "ClaimUID": "u", "ClaimName": "c", "CdiDevices": ["v/c=1"]}))
    assert (found.form, found.verified) == (Form.BETA, False)
    assert found.claims == (ClaimEntry("u", "c", "", None, {"d": (PreparedDevice("", "", None, (), ("v/c=1",)),)}),)
    assert isinstance(read(blob(entry(CDIDevices=None))), Damage)  # of no beta, but damaged


@pytest.mark.spec("DN-4.09")
def test_each_driver_with_cdi_devices_has_one_device_without_names() -> None:
    found = claim_legacy.claim(ENTRY)
    assert (found.uid, found.name, found.namespace, found.pods) == ("uid", "claim", "ns", frozenset({"a", "b"}))
    assert found.drivers == {
        "d.example.com": (),
        "x.example.com": (),
        "y.example.com": (PreparedDevice("", "", None, (), ("v/c=2", "v/c=1")),),
        "z.example.com": (),
    }


@pytest.mark.spec("DN-4.09")
@pytest.mark.parametrize(
    ("members", "drivers"),
    [
        ({}, ["d"]),
        ({"CDIDevices": {"e": ["v/c=1"]}}, ["e"]),
        ({"ResourceHandles": [{"driverName": "f"}, {}]}, ["f", "d"]),
        ({"ResourceHandles": [{"driverName": "f"}], "CDIDevices": {"e": []}}, ["f", "e"]),
        ({"DriverName": ""}, []),
    ],
)
def test_every_driver_that_prepared_something_is_kept(members: Document, drivers: list[str]) -> None:
    (claim,) = decode(blob(entry(**members), form=Form.V1_30)).claims or ()
    assert list(claim.drivers or ()) == drivers


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"CDIDevices": {"d": "x"}}, "entries[0].CDIDevices: expected a list, found a string"),
        (
            {"ResourceHandles": [{"structuredData": 1}]},
            "entries[0].ResourceHandles: expected an object, found the number 1",
        ),
        ({"ClassName": []}, "entries[0].ClassName: expected a string, found a list"),
    ],
)
def test_the_reason_names_the_place(members: Document, reason: str) -> None:
    found = read(blob(entry(**members)))
    assert isinstance(found, Damage)
    assert (found.form, found.reason) == (Form.V1_30, reason)


def test_a_wrong_checksum_keeps_the_data() -> None:
    found = read(blob(entry(CDIDevices={"d": ["v/c=1"]})))
    assert isinstance(found, Damage) and found.data is not None and found.data.claims
    assert found.data.claims[0].drivers == {"d": (PreparedDevice("", "", None, (), ("v/c=1",)),)}
