import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cluster.store.records import Record
from devlet.cluster.store.selection import Selection, parse_version
from devlet.errors import BadRequest
from devlet.objects.kinds import CONFIG_MAPS, EVENTS, PODS, Resource


def record(namespace: str = "ns", **members: object) -> Record:
    body = {"kind": "Pod", "metadata": {"name": "a", "namespace": namespace, "labels": {"x": "1"}}, **members}
    return Record((namespace, "a"), 1, msgspec.json.encode(body))


@pytest.mark.parametrize(
    ("namespace", "labels", "fields", "matches"),
    [
        ("", "", "", True),
        ("ns", "", "", True),
        ("other", "", "", False),
        ("", "x=1", "", True),
        ("", "x=2", "", False),
        ("", "", "spec.nodeName=n1", True),
        ("", "", "spec.nodeName!=n1", False),
        ("", "", "status.phase=", True),
        ("ns", "x", "spec.nodeName=n1,metadata.name=a", True),
        ("ns", "!x", "spec.nodeName=n1", False),
    ],
)
def test_namespace_labels_and_fields_must_all_match(namespace: str, labels: str, fields: str, matches: bool) -> None:
    selection = Selection(PODS, namespace, labels, fields)
    assert selection.matches(record(spec={"nodeName": "n1"})) is matches
    assert selection.selects is bool(labels or fields)


def test_the_shapes_of_an_event_are_selected_by_their_own_names() -> None:
    event = record(kind="Event", apiVersion="v1", involvedObject={"name": "p"}, source={"component": "c"}, reason="R")
    assert Selection(EVENTS, "", "", "involvedObject.name=p,source=c").matches(event)
    new = Resource(EVENTS.kind, "events.k8s.io/v1")
    assert Selection(new, "", "", "regarding.name=p").matches(event)
    assert not Selection(new, "", "", "regarding.name=q").matches(event)


@pytest.mark.parametrize(("labels", "fields"), [("=", ""), ("", "data=x"), ("a in (", ""), ("", "metadata.name")])
def test_a_selector_that_cannot_be_understood_is_a_bad_request(labels: str, fields: str) -> None:
    with pytest.raises(BadRequest):
        Selection(CONFIG_MAPS, "", labels, fields)


@given(st.integers(0, 10**19 - 1))
def test_a_version_is_a_decimal_number(number: int) -> None:
    assert parse_version(str(number)) == number


def test_no_version_is_zero() -> None:
    assert (parse_version(""), parse_version("0")) == (0, 0)


@pytest.mark.parametrize("text", ["-1", "+1", "1.0", "0x1", " 1", "1e3", "²", "٣", "1" * 20, "abc"])
def test_a_version_that_is_not_a_number_is_a_bad_request(text: str) -> None:
    with pytest.raises(BadRequest, match="resourceVersion must be a decimal number"):
        parse_version(text)


@given(st.text())
def test_every_text_is_a_version_or_a_bad_request(text: str) -> None:
    try:
        assert parse_version(text) >= 0
    except BadRequest:
        assert text
