import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import BadRequest
from devlet.objects.documents import Document
from devlet.objects.protobuf import envelope as kube_protobuf
from devlet.objects.protobuf.envelope import MAGIC
from devlet.objects.schema.messages import kinds, message, message_of
from devlet.objects.schema.shape import conform

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "kube_protobuf.json").read_text(encoding="utf-8"))
SAMPLES = VECTORS["vectors"] + VECTORS["recorded_requests"]
FRAMES = VECTORS["watch_frames"]
CORE = "k8s.io.api.core.v1."


def blob_of(sample: Document) -> bytes:
    return base64.b64decode(sample["protobuf_base64"])


BLOBS = [blob_of(sample) for sample in SAMPLES]


def refusal(blob: bytes) -> str:
    with pytest.raises(BadRequest) as caught:
        kube_protobuf.decode(blob)
    return str(caught.value)


def enveloped(data: bytes, kind: str = "Pod", api_version: str = "v1") -> bytes:
    type_meta = b"\x0a" + sized(api_version.encode()) + b"\x12" + sized(kind.encode())
    return MAGIC + b"\x0a" + sized(type_meta) + b"\x12" + sized(data)


def sized(data: bytes) -> bytes:
    assert len(data) < 128
    return bytes([len(data)]) + data


def test_the_vectors_are_complete() -> None:
    assert [len(VECTORS[part]) for part in ("vectors", "watch_frames", "recorded_requests")] == [135, 17, 22]


@pytest.mark.spec("KA-2.3")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.get("name") or s["path"])
def test_bytes_of_the_reference_decode_to_its_json(sample: Document) -> None:
    decoded = kube_protobuf.decode(blob_of(sample))
    assert decoded == sample["json"]
    assert list(decoded)[:2] == ["kind", "apiVersion"]


@pytest.mark.spec("KA-2.3")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.get("name") or s["path"])
def test_json_of_the_reference_encodes_to_its_bytes(sample: Document) -> None:
    assert kube_protobuf.encode(sample["json"]) == blob_of(sample)


@pytest.mark.spec("KA-2.4")
@pytest.mark.parametrize("frame", FRAMES, ids=lambda f: f["name"])
def test_watch_frames_are_those_of_the_reference(frame: Document) -> None:
    data, event = base64.b64decode(frame["frame_base64"]), frame["json_line"]
    assert kube_protobuf.decode_watch_frame(data) == (event["type"], event["object"])
    assert kube_protobuf.encode_watch_event(event["type"], event["object"]) == data


@pytest.mark.spec("KA-2.4")
@pytest.mark.parametrize("frame", [b"", b"\0\0", b"\0\0\0\1", b"\0\0\0\0rest", b"\xff\xff\xff\xff"])
def test_a_frame_whose_length_is_wrong_is_refused(frame: bytes) -> None:
    with pytest.raises(BadRequest, match="length in front"):
        kube_protobuf.decode_watch_frame(frame)


@pytest.mark.spec("KA-2.4")
def test_a_frame_without_object_is_refused() -> None:
    with pytest.raises(BadRequest, match="does not start with"):
        kube_protobuf.decode_watch_frame(b"\0\0\0\x07\x0a\x05ADDED")


@pytest.mark.spec("KA-2.3")
def test_a_list_can_be_made_of_items_written_before() -> None:
    items = [{"metadata": {"name": name}, "data": {"a": "b"}} for name in ("x", "y")]
    written = [kube_protobuf.encode_message(message(CORE + "ConfigMap"), item) for item in items]
    meta = {"resourceVersion": "7"}
    whole = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": meta, "items": items}
    assert kube_protobuf.encode_list("v1", "ConfigMapList", meta, written) == kube_protobuf.encode(whole)


@pytest.mark.spec("KA-2.3")
def test_delete_options_come_with_the_api_version_of_the_resource() -> None:
    body = {"kind": "DeleteOptions", "apiVersion": "resource.k8s.io/v1", "gracePeriodSeconds": 0}
    assert kube_protobuf.decode(kube_protobuf.encode(body)) == body


def test_a_type_missing_in_the_envelope_is_taken_from_the_caller() -> None:
    blob = enveloped(b"", kind="", api_version="")
    assert kube_protobuf.decode(blob, api_version="v1", kind="ConfigMap") == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {},
    }
    assert "'Kind' is missing" in refusal(blob)


@pytest.mark.spec("KA-2.3")
def test_packed_and_unpacked_numbers_are_accepted() -> None:
    context = message(CORE + "PodSecurityContext")
    assert context.properties["supplementalGroups"].number == 4
    for data in (b"\x20\x01\x20\x96\x01", b"\x22\x03\x01\x96\x01", b"\x20\x01\x22\x02\x96\x01"):
        assert kube_protobuf.decode_message(context, data) == {"supplementalGroups": [1, 150]}


@pytest.mark.spec("KA-2.3")
def test_unknown_field_numbers_are_skipped() -> None:
    extra = b"\xf8\x7f\x05" + b"\xf9\x7f12345678" + b"\xfa\x7f\x02ab" + b"\xfd\x7f1234"
    sub = message(CORE + "ContainerPort")
    assert kube_protobuf.decode_message(sub, extra + b"\x18\x50" + extra) == {"containerPort": 80}
    assert kube_protobuf.decode(enveloped(extra, kind="Namespace"))["kind"] == "Namespace"


def test_fields_in_any_order_and_repeated_give_the_last_value() -> None:
    sub = message(CORE + "ContainerPort")
    assert kube_protobuf.decode_message(sub, b"\x18\x50\x0a\x01a\x18\x51\x0a\x01b") == {
        "name": "b",
        "containerPort": 81,
    }
    assert kube_protobuf.decode_message(sub, b"\x0a\x01a\x18\x51\x0a\x00") == {"containerPort": 81}


def test_negative_numbers_take_ten_bytes() -> None:
    class_ = message("k8s.io.api.scheduling.v1.PriorityClass")
    data = kube_protobuf.encode_message(class_, {"metadata": {}, "value": -1})
    assert b"\x10" + b"\xff" * 9 + b"\x01" in data
    assert kube_protobuf.decode_message(class_, data)["value"] == -1


def test_a_map_entry_without_key_or_value_is_the_zero_value() -> None:
    config_map = message(CORE + "ConfigMap")
    assert kube_protobuf.decode_message(config_map, b"\x12\x00")["data"] == {"": ""}
    assert kube_protobuf.decode_message(config_map, b"\x12\x03\x0a\x01a")["data"] == {"a": ""}


def test_an_empty_time_is_none_and_second_zero_is_1970() -> None:
    meta = message("k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta")
    assert kube_protobuf.decode_message(meta, b"\x42\x00") == {}
    assert kube_protobuf.decode_message(meta, b"\x42\x02\x08\x00") == {"creationTimestamp": "1970-01-01T00:00:00Z"}


def test_keys_without_a_number_are_not_sent() -> None:
    body: Document = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}, "strange": 1}
    assert "strange" not in kube_protobuf.decode(kube_protobuf.encode(body))


@pytest.mark.spec("KA-2.3")
@pytest.mark.parametrize(
    ("blob", "reason"),
    [
        (b"", "does not start with"),
        (b'{"kind":"Pod"}', "does not start with"),
        (MAGIC, "'Kind' is missing"),
        (MAGIC + b"\x0a", "ends in the middle"),
        (MAGIC + b"\x0a\x05ab", "5 bytes is announced where 2 are left"),
        (MAGIC + b"\x0a" + b"\xff" * 11, "more than ten bytes"),
        (MAGIC + b"\x0a\x04\x12\x02\xff\xfe", "not UTF-8"),
        (MAGIC + b"\x08\x01", "field 1 has wire type 0"),
        (MAGIC + b"\x0b\x0c", "wire type 3 is not used"),
        (enveloped(b"", kind="Widget"), 'no kind "Widget" is registered for version "v1"'),
        (enveloped(b"") + b"\x1a\x04gzip", "content encoding b'gzip' is not supported"),
        (enveloped(b"\x0a\x03ab"), "3 bytes is announced where 2 are left"),
        (enveloped(b"\x0a\x03\x0a\x01\xff"), "not UTF-8"),
        (enveloped(b"\x08\x01"), "field metadata has wire type 0 instead of bytes"),
        (enveloped(b"\x02\x01"), "number 0"),
        (enveloped(b"\xfb\x7f"), "wire type 3"),
        (enveloped(b"\xf9\x7f123"), "ends in the middle"),
        (enveloped(b"\x0a\x0c\x42\x0a\x08" + b"\xff" * 8 + b"\x7f"), "beyond the years 1 to 9999"),
        (enveloped(b"\x0a\x04\x42\x02\x0a\x00"), "a time has a field of the wrong wire type"),
    ],
)
def test_malformed_bodies_are_refused_with_the_reason(blob: bytes, reason: str) -> None:
    assert reason in refusal(blob)


def test_json_inside_protobuf_is_checked() -> None:
    opaque = message("k8s.io.api.resource.v1.OpaqueDeviceConfiguration")

    def parameters(raw: bytes) -> Any:
        size = len(raw).to_bytes(2, "little")
        length = bytes([size[0] & 0x7F | 0x80, len(raw) >> 7 & 0x7F | 0x80, len(raw) >> 14])
        outer = len(raw) + 4
        outer_length = bytes([outer & 0x7F | 0x80, outer >> 7 & 0x7F | 0x80, outer >> 14])
        data = b"\x12" + outer_length + b"\x0a" + length + raw
        return kube_protobuf.decode_message(opaque, data)["parameters"]

    assert parameters(b'{"a": [1, null, 12345678901234567890]}') == {"a": [1, None, 12345678901234567890]}
    assert parameters(b"") is None
    for raw, reason in (
        (b"{", "JSON text"),
        (b"\xff", "JSON text"),
        (MAGIC, "JSON text"),
        (b"[" * 200 + b"]" * 200, "nested deeper"),
        (b"[" * 50_000, "nested deeper"),
    ):
        with pytest.raises(BadRequest, match=reason):
            parameters(raw)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"apiVersion": "v1"}, "'Kind' is missing"),
        ({"apiVersion": "v1", "kind": 5}, "'Kind' is missing"),
        ({"kind": "Status"}, "'apiVersion' is missing"),
        ({"apiVersion": "\ud800", "kind": "Status"}, "'apiVersion' is missing or malformed"),
        ({"apiVersion": "example.com/v1", "kind": "Widget"}, 'no kind "Widget"'),
        ({"apiVersion": "v1", "kind": "Pod", "spec": {"hostname": 5}}, "field spec.hostname of type string"),
        ({"apiVersion": "v1", "kind": "Pod", "spec": []}, "field spec of type PodSpec"),
        ({"apiVersion": "v1", "kind": "Pod", "spec": {"priority": "high"}}, "field spec.priority of type int32"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"creationTimestamp": "x"}}, "of type RFC 3339 time"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "\ud800"}}, "cannot be written as protobuf"),
    ],
)
def test_a_document_that_cannot_be_written_is_refused_with_the_member(body: Document, reason: str) -> None:
    with pytest.raises(BadRequest) as caught:
        kube_protobuf.encode(body)
    assert reason in str(caught.value)


def takes_or_refuses(blob: bytes) -> None:
    try:
        decoded = kube_protobuf.decode(blob)
    except BadRequest as refused:
        assert str(refused)
    else:
        assert kube_protobuf.decode(kube_protobuf.encode(decoded)) == decoded


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    takes_or_refuses(data)
    takes_or_refuses(MAGIC + data)


@given(st.sampled_from(sorted(kinds())), st.binary(max_size=100))
def test_arbitrary_bytes_as_any_kind_are_taken_or_refused(kind: str, data: bytes) -> None:
    api_version, _, name = kind.rpartition("/")
    takes_or_refuses(enveloped(data[:100], kind=name[:40], api_version=api_version[:40]))


@given(st.sampled_from(BLOBS), st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_objects_are_taken_or_refused(blob: bytes, damages: list[tuple[int, int]]) -> None:
    damaged = bytearray(blob)
    for place, byte in damages:
        damaged[place % len(damaged)] = byte
    takes_or_refuses(bytes(damaged))


@given(st.sampled_from(BLOBS), st.integers(0))
def test_truncated_objects_are_taken_or_refused(blob: bytes, length: int) -> None:
    takes_or_refuses(blob[: length % len(blob)])


@pytest.mark.parametrize("seed", range(5))
def test_damaged_frames_are_taken_or_refused(seed: int) -> None:
    choose = random.Random(seed)
    for frame in FRAMES:
        damaged = bytearray(base64.b64decode(frame["frame_base64"]))
        damaged[choose.randrange(4, len(damaged))] = choose.randrange(256)
        try:
            type_, document = kube_protobuf.decode_watch_frame(bytes(damaged))
        except BadRequest as refused:
            assert str(refused)
        else:
            assert type_.isprintable() or type_ != frame["type"]
            assert message_of(document["apiVersion"], document["kind"])


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.get("name") or s["path"])
def test_what_is_decoded_is_in_shape_already(sample: Document) -> None:
    """So the API does not look at it twice."""
    document = kube_protobuf.decode(blob_of(sample))
    found = message_of(document["apiVersion"], document["kind"])
    assert found is not None
    assert conform(document, found).document == document


def test_quantities_are_decoded_in_canonical_form() -> None:
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {}, "spec": {}, "status": {"capacity": {"cpu": "1000m"}}}
    assert kube_protobuf.decode(kube_protobuf.encode(node))["status"]["capacity"] == {"cpu": "1"}
    broken = kube_protobuf.encode(node).replace(b"1000m", b"1 0 m")
    with pytest.raises(BadRequest, match="is not a quantity"):
        kube_protobuf.decode(broken)
