import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import BadRequest, DevletError, TooLarge
from devlet.objects.protobuf import envelope as kube_protobuf
from devlet.serve.kube_api import bodies
from devlet.serve.kube_api.bodies import UnknownFormat, decode, decode_patch

LEASE = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "a"}, "spec": {}}


def test_an_object_may_be_json_yaml_or_protobuf() -> None:
    assert decode(msgspec.json.encode(LEASE), "").document == LEASE
    assert decode(msgspec.json.encode(LEASE), "application/json; charset=utf-8").document == LEASE
    assert decode(b"kind: Lease\nmetadata: {name: a}", "application/yaml").document["metadata"] == {"name": "a"}
    assert decode(kube_protobuf.encode(LEASE), bodies.PROTOBUF).document["metadata"]["name"] == "a"


def test_keys_that_occur_twice_are_reported_with_their_path() -> None:
    found = decode(b'{"data":{"k":"1","k":"2"},"list":[{"a":1,"a":2}]}', "application/json")
    assert found.duplicates == ("data.k", "list[0].a")
    assert found.document["data"] == {"k": "2"}
    assert decode(b' { "a" : "<\\u003c>" } ', "application/json").duplicates == ()


def test_dates_in_yaml_are_strings() -> None:
    assert decode(b"a: 2026-01-01", "application/yaml").document == {"a": "2026-01-01"}


@pytest.mark.parametrize(
    ("blob", "content_type"),
    [
        (b"{", "application/json"),
        (b"[]", "application/json"),
        (b"\xff", "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"a: [", "application/yaml"),
        (b"a: &x [1]\nb: *x", "application/yaml"),
        (b"!!python/object:os.system {}", "application/yaml"),
        (b"k8s\x00\xff", bodies.PROTOBUF),
        (b"", bodies.PROTOBUF),
    ],
)
def test_a_malformed_body_is_a_bad_request(blob: bytes, content_type: str) -> None:
    with pytest.raises(BadRequest):
        decode(blob, content_type)


def test_the_refusal_of_another_format_lists_the_supported_ones() -> None:
    with pytest.raises(
        UnknownFormat, match=r"application/json, application/yaml, application/vnd\.kubernetes\.protobuf"
    ):
        decode(b"{}", "text/plain")
    with pytest.raises(UnknownFormat, match="415"):
        decode_patch(b"{}", "application/json")


def test_apply_patches_are_json_or_yaml() -> None:
    assert decode_patch(b'{"a": 1}', bodies.APPLY_PATCH) == {"a": 1}
    assert decode_patch(b"a: 1", bodies.APPLY_PATCH) == {"a": 1}


def test_an_empty_protobuf_body_is_a_bad_request() -> None:
    with pytest.raises(BadRequest, match=r"must be of type Lease.*empty body"):
        decode(kube_protobuf.MAGIC, bodies.PROTOBUF, api_version="coordination.k8s.io/v1", kind="Lease")


def test_the_number_of_operations_is_limited() -> None:
    bodies.check_operations(10_000)
    with pytest.raises(TooLarge, match="maximum operations in a JSON patch is 10000, got 10001"):
        bodies.check_operations(10_001)


def test_the_size_is_limited() -> None:
    bodies.check_size(None)
    bodies.check_size(3 << 20)
    with pytest.raises(TooLarge, match="limit is 3145728"):
        bodies.check_size((3 << 20) + 1)


@given(st.binary(max_size=200), st.sampled_from([bodies.JSON, bodies.YAML, bodies.PROTOBUF, bodies.APPLY_PATCH]))
def test_no_body_crashes_the_decoder(blob: bytes, content_type: str) -> None:
    for read in (decode, decode_patch):
        try:
            read(blob, content_type)
        except DevletError as e:
            assert str(e)


def test_yaml_that_is_nested_too_deeply_is_refused_before_it_is_built() -> None:
    for content_type in (bodies.YAML, bodies.APPLY_PATCH):
        with pytest.raises(BadRequest, match="nested more than 100 levels deep"):
            (decode if content_type == bodies.YAML else decode_patch)(b"[" * 60_000, content_type)


def test_keys_that_occur_twice_in_yaml_are_reported_too() -> None:
    assert decode(b"data: {a: '1', a: '2'}\nlist: [{b: 1, b: 2}]", bodies.YAML).duplicates == ("data.a", "list[0].b")


def test_compressed_bodies_are_refused() -> None:
    bodies.check_encoding("identity")
    with pytest.raises(UnknownFormat, match="compressed"):
        bodies.check_encoding("gzip")


def test_the_number_of_objects_and_lists_is_limited() -> None:
    fits = b'{"a":[' + b"[]," * (bodies.MAX_CONTAINERS - 3) + b"[]]}"
    assert len(decode(fits, bodies.JSON).document["a"]) == bodies.MAX_CONTAINERS - 2
    for content_type in (bodies.JSON, bodies.YAML):
        with pytest.raises(TooLarge, match="limit is 250000 objects and lists"):
            decode(b'{"a":[' + b"[]," * bodies.MAX_CONTAINERS + b"1]}", content_type)


def test_numbers_with_large_exponents_are_read_and_out_of_range_refused() -> None:
    assert decode(b'{"a":[1.5e300,5e-324,0.1]}', bodies.JSON).document == {"a": [1.5e300, 5e-324, 0.1]}
    with pytest.raises(BadRequest, match="out of range"):
        decode(b'{"a":1e999}', bodies.JSON)


def test_yaml_of_other_types_than_json_is_refused_with_its_place() -> None:
    with pytest.raises(BadRequest, match=r"error converting YAML to JSON: .*!?set is not supported, in line 1"):
        decode(b"a: !!set {b}", bodies.YAML)
