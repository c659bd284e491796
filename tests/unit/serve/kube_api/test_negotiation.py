"""The form of an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.serve.kube_api.bodies import JSON, PROTOBUF, YAML
from devlet.serve.kube_api.negotiation import (
    Format,
    is_pretty,
    media_types,
    negotiate,
    negotiate_discovery,
    negotiate_openapi,
    not_acceptable,
    wants_gzip,
)
from devlet.serve.kube_api.openapi_protobuf import MEDIA_TYPE, MEDIA_TYPES

META = "g=meta.k8s.io;v=v1"
KUBECTL_GET = f"{JSON};as=Table;v=v1;g=meta.k8s.io,{JSON};as=Table;v=v1beta1;g=meta.k8s.io,{JSON}"
INFORMER = f"{PROTOBUF};as=PartialObjectMetadata;{META},{JSON};as=PartialObjectMetadata;{META},{JSON}"
DISCOVERY = ",".join(
    [f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")] + [JSON]
)

pytestmark = pytest.mark.spec("KA-2.1")


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Format(JSON)),
        ("*/*", Format(JSON)),
        (f"{JSON}, */*", Format(JSON)),
        (f"{PROTOBUF},{JSON}", Format(PROTOBUF)),
        (f"{PROTOBUF}, */*", Format(PROTOBUF)),
        (KUBECTL_GET, Format(JSON, "Table", "v1")),
        (INFORMER, Format(PROTOBUF, "PartialObjectMetadata", "v1")),
        (INFORMER.replace("Metadata;", "MetadataList;"), Format(PROTOBUF, "PartialObjectMetadataList", "v1")),
    ],
)
def test_the_headers_of_known_clients_are_understood(accept: str, form: Format) -> None:
    assert negotiate(accept) == form


def test_without_protobuf_the_next_range_is_used() -> None:
    assert negotiate(f"{PROTOBUF},{JSON}", protobuf=False) == Format(JSON)
    assert negotiate(INFORMER, protobuf=False) == Format(JSON, "PartialObjectMetadata", "v1")
    assert negotiate(PROTOBUF, protobuf=False) is None


@pytest.mark.spec("KA-10.80")
@pytest.mark.parametrize(
    "accept", ["text/html", "application/*", "application/cbor", "nonsense", f"{JSON};as=Row;{META}"]
)
def test_unsupported_forms_are_not_acceptable(accept: str) -> None:
    assert negotiate(accept) is None


def test_the_larger_weight_wins_and_named_types_go_before_the_wildcard() -> None:
    assert negotiate(f"{JSON};q=0.5,{YAML}") == Format(YAML)
    assert negotiate(f"*/*,{YAML}") == Format(YAML)
    assert negotiate(f"{YAML};q=0.05,*/*;q=0.1") == Format(JSON)


def test_a_weight_of_nothing_means_last() -> None:
    assert negotiate(f"{JSON};q=0,{YAML};q=0.001") == Format(YAML)
    assert negotiate(f"{JSON};q=0") == Format(JSON)


def test_a_table_requires_group_and_version_of_meta() -> None:
    assert negotiate(f"{JSON};as=Table;v=v1") is None
    assert negotiate(f"{JSON};as=Table;v=v2;g=meta.k8s.io,{JSON}") == Format(JSON)


def test_tables_are_not_available_as_protobuf() -> None:
    assert negotiate(f"{PROTOBUF};as=Table;{META},{JSON}") == Format(JSON)


def test_a_stream_is_neither_yaml_nor_a_list() -> None:
    assert negotiate(YAML, watch=True) is None
    assert negotiate(f"{JSON};as=PartialObjectMetadataList;{META}", watch=True) is None
    assert negotiate(PROTOBUF, watch=True) == Format(PROTOBUF)


def test_the_content_type_does_not_repeat_the_transformation() -> None:
    assert Format(JSON, "Table", "v1").content_type() == JSON
    assert Format(PROTOBUF).content_type(watch=True) == f"{PROTOBUF};stream=watch"
    assert Format(JSON).content_type(watch=True) == JSON


def test_a_list_form_fits_only_lists_and_an_object_form_only_objects() -> None:
    assert Format(JSON, "PartialObjectMetadata", "v1").refusal(is_list=True)
    assert Format(JSON, "PartialObjectMetadataList", "v1").refusal(is_list=False)
    assert Format(JSON, "PartialObjectMetadata", "v1").refusal(is_list=False) is None
    assert Format(JSON, "Table", "v1").refusal(is_list=True) is None


@pytest.mark.spec("KA-1.2")
def test_aggregated_discovery_is_used_on_request_where_it_exists() -> None:
    form = negotiate_discovery(DISCOVERY, aggregated=True)
    assert form is not None
    assert form.content_type() == f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert negotiate_discovery(DISCOVERY, aggregated=False) == Format(JSON)
    assert negotiate_discovery(KUBECTL_GET, aggregated=True) == Format(JSON)


def test_older_aggregated_discovery_falls_back_to_the_plain_document() -> None:
    assert negotiate_discovery(DISCOVERY.partition(",")[2], aggregated=True) == Format(JSON)


def test_a_refusal_lists_the_supported_media_types() -> None:
    assert not_acceptable(media_types()) == f"only the following media types are accepted: {JSON}, {YAML}, {PROTOBUF}"
    assert YAML not in not_acceptable(media_types(watch=True))


@pytest.mark.parametrize("agent", ["curl/8.5.0", "Wget/1.21", "Mozilla/5.0 (X11)"])
def test_browsers_and_curl_get_indented_json_unless_they_decline(agent: str) -> None:
    assert is_pretty(Format(), None, agent)
    assert not is_pretty(Format(), "false", agent)
    assert not is_pretty(Format(PROTOBUF), None, agent)


def test_other_programs_get_indented_json_on_request() -> None:
    assert not is_pretty(Format(), None, "kubectl/v1.36.4")
    assert is_pretty(Format(), "1", "kubectl/v1.36.4")
    form = negotiate(f"{JSON};pretty=1")
    assert form is not None and is_pretty(form, None, "kubectl/v1.36.4")


def test_only_large_answers_are_compressed_and_streams_never() -> None:
    large = (128 << 10) + 1
    assert wants_gzip("gzip", large)
    assert wants_gzip("br, gzip;q=0.5", large)
    assert not wants_gzip("gzip", large - 1)
    assert not wants_gzip("gzip", large, watch=True)
    assert not wants_gzip("gzip;q=0", large)
    assert not wants_gzip("", large)
    assert not wants_gzip("identity", large)


@given(st.text(alphabet=st.sampled_from("application/json;,=*q0.19 asTable\x00é"), max_size=200))
def test_any_accept_header_is_understood_or_refused(accept: str) -> None:
    form = negotiate(accept)
    assert form is None or form.media_type in media_types()


def test_a_header_with_thousands_of_ranges_is_not_read_to_its_end() -> None:
    assert negotiate(",".join(["text/html"] * 5_000 + [JSON])) is None


@pytest.mark.parametrize("asked", MEDIA_TYPES)
def test_openapi_2_is_protobuf_on_request(asked: str) -> None:
    assert negotiate_openapi(asked) == MEDIA_TYPE
    assert negotiate_openapi(f"{JSON};q=0.5, {asked}") == MEDIA_TYPE
    assert negotiate_openapi(f"{JSON}, {asked}") == JSON


@pytest.mark.parametrize("accept", ["", "*/*", "application/*", JSON])
def test_openapi_2_is_json_for_other_clients(accept: str) -> None:
    assert negotiate_openapi(accept) == JSON


def test_openapi_2_has_no_other_form() -> None:
    assert negotiate_openapi(f"text/html, {PROTOBUF}, {YAML}") is None


@pytest.mark.parametrize("accept", [KUBECTL_GET, INFORMER, YAML, "text/html", ""])
def test_long_headers_are_read_as_short_ones(accept: str) -> None:
    for watch in (False, True):
        assert negotiate(f"{accept or '*/*'}{',' * 1000}", watch=watch) == negotiate(accept, watch=watch)
