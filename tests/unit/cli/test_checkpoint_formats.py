import json
from datetime import UTC, datetime

import pytest

from devlet.cli.checkpoint_formats import (
    FORMATS,
    ClaimManagerFormat,
    DeviceManagerFormat,
    HealthFormat,
    Verdict,
    recognised,
)
from devlet.errors import InvalidInput, StateCorrupt
from devlet.state import claim_checkpoint, health_file
from devlet.state.claim_checkpoint import ClaimEntry, PreparedDevice
from devlet.state.device_checkpoint import Checkpoint, Encoder, Entry, Form, checksum, decode
from devlet.state.health_file import DeviceHealth

DEVICES = DeviceManagerFormat()
CLAIMS = ClaimManagerFormat()
HEALTH = HealthFormat()
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
WHOLE_HEALTH = health_file.encode({"d.io": [DeviceHealth("p", name, "Healthy", NOON, 30.0) for name in "ab"]})
CLAIM = ClaimEntry("u", "c", "ns", frozenset({"p"}), {"d.io": ()})
WHOLE_CLAIMS = claim_checkpoint.Encoder().encode([CLAIM])
OLD_CLAIMS = b'{"version":"v1","entries":[{"ClaimUID":"u","ClaimName":"c","Namespace":"ns"}],"checksum":1}'
WHOLE = Encoder().encode([Entry("u", "c", "r.io/x", {0: ("d",)}, None)], {"r.io/x": ["d"]})


@pytest.mark.parametrize(
    "blob",
    [WHOLE, WHOLE[:40], b'{"Checksum":2932075448}', b'{"Entries":[]}', WHOLE.lower(), b'\0\0"PodDeviceEntries"\0'],
)
def test_a_device_checkpoint_is_recognised_even_if_it_is_damaged(blob: bytes) -> None:
    assert recognised(blob, None).name == "kubelet_internal_checkpoint"


@pytest.mark.parametrize(
    "blob",
    [
        WHOLE_CLAIMS,
        WHOLE_CLAIMS[:40],
        WHOLE_CLAIMS.lower(),
        claim_checkpoint.Encoder().encode(None),
        OLD_CLAIMS,
        OLD_CLAIMS[:60],
        b'{"version":"v1","checksum":991151041}',
        b'{"checksum":4010664294}',
        b'\0\0\\"ClaimUID\\"\0',
    ],
)
def test_a_claim_checkpoint_is_recognised_even_if_it_is_damaged(blob: bytes) -> None:
    assert recognised(blob, None).name == "dra_manager_state"


@pytest.mark.parametrize(
    "blob",
    [
        WHOLE_HEALTH,
        WHOLE_HEALTH[:40],
        WHOLE_HEALTH.lower(),
        b'{"d.io":{"Devices":{}}}',
        b'{"d.io":{"Devices":{"p/d":{"PoolName":"p"}}}}',
        b'\0\0"LastUpdated"\0',
    ],
)
def test_a_file_of_health_is_recognised_even_if_it_is_damaged(blob: bytes) -> None:
    assert recognised(blob, None).name == "dra_health_state"


@pytest.mark.parametrize("blob", [b"", b" ", b"{}", b'{"Data":"{}","Checksum":1}'])
def test_what_is_not_recognised_can_be_named(blob: bytes) -> None:
    with pytest.raises(InvalidInput, match="name its kind with --format"):
        recognised(blob, None)
    for name in ("kubelet_internal_checkpoint", "dra_manager_state", "dra_health_state"):
        assert recognised(blob, name) is FORMATS[name]


def test_a_verdict_names_the_version() -> None:
    assert DEVICES.verify(WHOLE).text.startswith("v2: valid, checksum ")
    raw: dict[str, object] = {"PodDeviceEntries": [], "RegisteredDevices": {}}
    assert DEVICES.verify(json.dumps(raw).encode()).text == "raw: valid, no checksum, 0 entries, 0 resources"
    assert DEVICES.verify(b'{"Entries":[]}').text == "1.8: valid, no checksum, 0 entries, 0 resources"


def written(form: Form, *devices: tuple[str, tuple[str, ...]]) -> bytes:
    """A file of this version: pods, and what each has."""
    each: list[tuple[str, dict[str, object]]]
    if form is Form.V1_8:
        each = [(pod, {"DeviceID": id}) for pod, ids in devices for id in ids]
    else:
        each = [(pod, {"DeviceIDs": {"0": ids} if form is Form.V2 else ids}) for pod, ids in devices]
    owner = {"ContainerName": "c", "ResourceName": "r.io/x"}
    entries = [{"PodUID": pod, **owner, **held, "AllocResp": None} for pod, held in each]
    if form in (Form.V1_8, Form.V1_9_ALPHA):
        return json.dumps({"Entries": entries}).encode()
    data = {"PodDeviceEntries": entries, "RegisteredDevices": {}}
    if form is Form.RAW:
        return json.dumps(data).encode()
    number = 0 if form is Form.V2 else -1
    made = [Entry(pod, "c", "r.io/x", {number: ids}, None) for pod, ids in devices]
    return json.dumps({"Data": data, "Checksum": checksum(Checkpoint(tuple(made), {}, form))}).encode()


@pytest.mark.parametrize("form", Form)
def test_a_device_without_a_name_or_of_two_pods_is_reported_in_every_version(form: Form) -> None:
    sound = DEVICES.verify(written(form, ("a", ("d0", "d1")), ("b", ("d2",))))
    assert sound.valid and sound.text.startswith(f"{form}: valid")
    assert DEVICES.verify(written(form, ("a", ("d0", "d1")), ("b", ("d1",)))) == Verdict(
        False,
        f"{form}: damaged (content): device d1 of r.io/x is held twice: by pod a, container c, and by pod b,"
        " container c",
    )
    nameless = f"{form}: damaged (content): a device of pod a, container c, r.io/x, has no name"
    assert DEVICES.verify(written(form, ("a", ("d0", "")))) == Verdict(False, nameless)


def test_a_verdict_on_an_old_file_says_why_it_is_neither_old_nor_new() -> None:
    document = {"Data": {"PodDeviceEntries": [{"DeviceIDs": ["d"]}], "RegisteredDevices": {}}, "Checksum": 1}
    verdict = DEVICES.verify(json.dumps(document).encode())
    assert not verdict.valid
    assert verdict.text.startswith(
        "damaged (decode): Data.PodDeviceEntries[0].DeviceIDs: expected an object, found a list;"
        " as v1: the checksum does not match: the file says 1, its data give "
    )


def test_a_verdict_on_claims_names_version_and_checksum() -> None:
    checksum = json.loads(WHOLE_CLAIMS)["Checksum"]
    assert CLAIMS.verify(WHOLE_CLAIMS) == Verdict(True, f"1.31: valid, checksum {checksum}, 1 claim")
    empty = b'{"version":"v1","checksum":991151041}'
    assert CLAIMS.verify(empty).text == "1.30: valid, checksum 991151041, 0 claims"
    assert CLAIMS.verify(b'{"Data":"{}","Checksum":1}').text == (
        "damaged (checksum): the checksum does not match: the file says 1, its data give 2745614147"
    )
    assert CLAIMS.verify(OLD_CLAIMS).text.startswith(
        "damaged (checksum): as 1.30: the checksum does not match: the file says 1, its data give "
    )


@pytest.mark.spec("DN-4.08")
def test_a_verdict_on_claims_warns_of_what_it_cannot_verify() -> None:
    handles = b',"ResourceHandles":[{"structuredData":{}}]}'
    verdict = CLAIMS.verify(OLD_CLAIMS.replace(b"}", handles, 1))
    assert verdict.text == "1.30: valid, checksum 1 not verified, 1 claim"
    assert verdict.warnings == ("the checksum of a file of 1.30 cannot be verified",)


@pytest.mark.spec("DN-4.06")
def test_a_verdict_on_claims_warns_of_one_that_another_replaces() -> None:
    twice = claim_checkpoint.Encoder().encode([CLAIM, ClaimEntry("new", "c", "ns", None, None)])
    verdict = CLAIMS.verify(twice)
    assert verdict.valid
    assert verdict.warnings == ("claim ns/c with UID u will be dropped: a later one has its name",)


def test_a_verdict_on_claims_warns_of_a_device_that_two_of_them_have() -> None:
    def claim(name: str, device: str, share: str | None = None) -> ClaimEntry:
        return ClaimEntry(f"uid-{name}", name, "ns", None, {"d.io": (PreparedDevice("p", device, share),)})

    shares = [claim("c", "1", "x"), claim("d", "1", "y")]
    verdict = CLAIMS.verify(claim_checkpoint.Encoder().encode([claim("a", "0"), claim("b", "0"), *shares]))
    assert verdict.valid
    assert verdict.warnings == (
        "device p/0 of d.io is held twice: by claims ns/a and ns/b; this is correct only with admin access",
    )


def test_a_verdict_on_claims_warns_of_a_device_without_a_name() -> None:
    def claim(name: str, *devices: PreparedDevice) -> ClaimEntry:
        return ClaimEntry(f"uid-{name}", name, "ns", None, {"d.io": devices})

    whole = claim("a", PreparedDevice("p", "0"), PreparedDevice("", "", cdi_devices=("v.com/c=1",)))
    damaged = claim("b", PreparedDevice("p", ""), PreparedDevice("", "d"), PreparedDevice("", ""))
    assert CLAIMS.verify(claim_checkpoint.Encoder().encode([whole])).warnings == ()
    verdict = CLAIMS.verify(claim_checkpoint.Encoder().encode([whole, damaged]))
    assert [each.partition(" of claim ")[0] for each in verdict.warnings] == [
        "device p/? of d.io",
        "device ?/d of d.io",
        "device ?/? of d.io",
    ]
    assert all(" of claim ns/b has no name" in each for each in verdict.warnings)


def test_a_verdict_on_claims_of_an_old_kubelet_knows_their_cdi_devices() -> None:
    entries = [
        {"DriverName": "d.io", "ClaimUID": uid, "ClaimName": uid, "Namespace": "ns", "CDIDevices": ["v.com/c=1"]}
        for uid in ("a", "b", "")
    ]
    verdict = CLAIMS.verify(json.dumps({"version": "v1", "entries": entries, "checksum": 1}).encode())
    assert [warning.partition(";")[0] for warning in verdict.warnings[1:]] == [
        "claim ns/ has no UID",
        "device v.com/c=1 of d.io is held twice: by claims ns/a and ns/b",
        "device v.com/c=1 of d.io is held twice: by claims ns/a and ns/",
    ]


@pytest.mark.spec("DN-11.15")
def test_a_rescue_of_claims_has_a_file_that_can_be_read() -> None:
    rescue = CLAIMS.rescue(WHOLE_CLAIMS[:-10])
    assert (rescue.content, rescue.kept, rescue.lost) == (WHOLE_CLAIMS, "1 claim", ())
    assert claim_checkpoint.decode(CLAIMS.rescue(OLD_CLAIMS).content).form is claim_checkpoint.Form.V1_31
    assert CLAIMS.rescue(b"\0\0").content == b""


def test_damaged_claims_are_neither_shown_nor_converted() -> None:
    for act in (CLAIMS.document, CLAIMS.convert, lambda blob: list(CLAIMS.table(blob, wide=False))):
        with pytest.raises(StateCorrupt):
            act(WHOLE_CLAIMS[:-1])


def test_a_rescue_has_a_file_that_can_be_read() -> None:
    rescue = DEVICES.rescue(WHOLE[:-10])
    assert decode(rescue.content) == decode(WHOLE)
    assert (rescue.kept, rescue.lost) == ("1 entry, 1 resource", ())
    assert DEVICES.rescue(b"\0\0").content == b""


def test_what_is_damaged_is_neither_shown_nor_converted() -> None:
    for act in (DEVICES.document, DEVICES.convert, lambda blob: list(DEVICES.table(blob, wide=False))):
        with pytest.raises(StateCorrupt):
            act(WHOLE[:-1])


def test_a_verdict_on_health_counts_and_warns_of_what_a_node_drops() -> None:
    assert HEALTH.verify(WHOLE_HEALTH) == Verdict(True, "valid, no checksum, 2 devices, 1 driver")
    assert HEALTH.verify(b"null").text == "valid, no checksum, 0 devices, 0 drivers"
    nameless = health_file.encode({"d.io": [DeviceHealth("p", "", "Healthy", NOON)]})
    assert HEALTH.verify(nameless).warnings == ("device p/? of d.io will be dropped: it has no name",)
    damaged = HEALTH.verify(WHOLE_HEALTH[:-1])
    assert not damaged.valid
    assert damaged.text.startswith("damaged (decode): the health of devices cannot be read: it is not JSON at line 1")


def test_health_of_an_old_kubelet_gets_the_members_of_the_present_one() -> None:
    old = b'{"d.io":{"Devices":{"p/a":{"PoolName":"p","DeviceName":"a","Health":"Healthy"}}}}'
    assert json.loads(HEALTH.convert(old))["d.io"]["Devices"]["p/a"] == {
        "PoolName": "p",
        "DeviceName": "a",
        "Health": "Healthy",
        "LastUpdated": "0001-01-01T00:00:00Z",
        "HealthCheckTimeout": 0,
        "Message": "",
    }


def test_a_rescue_of_health_has_a_file_that_can_be_read() -> None:
    rescue = HEALTH.rescue(WHOLE_HEALTH[:-20])
    assert [each.device for each in health_file.decode(rescue.content)["d.io"]] == ["a"]
    assert (rescue.kept, rescue.lost) == ("1 device, 1 driver", ("device p/b of d.io: the file ends before it does",))
    assert HEALTH.rescue(b"\0\0").content == b""


def test_damaged_health_is_neither_shown_nor_converted() -> None:
    for act in (HEALTH.document, HEALTH.convert, lambda blob: list(HEALTH.table(blob, wide=False))):
        with pytest.raises(StateCorrupt):
            act(WHOLE_HEALTH[:-1])
