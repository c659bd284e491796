"""Field selectors. Parsing was checked against Kubernetes v1.36."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import BadRequest
from devlet.objects.documents import Document
from devlet.objects.selectors.fields import (
    EVERYTHING,
    MAX_TEXT,
    FieldRequirement,
    FieldSelector,
    escape,
    parse,
    selectable_fields,
    unescape,
)

POD: Document = {
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"nodeName": "n1", "restartPolicy": "Always", "schedulerName": "devlet", "serviceAccountName": "sa"},
    "status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]},
}
CORE_EVENT: Document = {
    "metadata": {"name": "e", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "p", "uid": "u", "apiVersion": "v1", "fieldPath": "spec"},
    "source": {"component": "kubelet"},
    "reason": "Started",
    "type": "Normal",
}
NEW_EVENT: Document = {
    "metadata": {"name": "e", "namespace": "default"},
    "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    "reportingController": "default-scheduler",
    "reason": "Scheduled",
    "type": "Normal",
}

DRA = "resource.k8s.io/v1"
NOT_KNOWN = '"x" is not a known field selector: only "metadata.name"'


def pods(text: str) -> FieldSelector:
    return parse(text, "v1", "Pod", True)


@pytest.mark.spec("KA-4.3")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        (",", True),
        ("metadata.name=p", True),
        ("metadata.name==p", True),
        ("metadata.name!=p", False),
        ("metadata.namespace=default,spec.nodeName=n1", True),
        ("metadata.namespace=default,spec.nodeName=n2", False),
        ("spec.host=n1", True),
        ("spec.restartPolicy=Always", True),
        ("spec.schedulerName=devlet", True),
        ("spec.serviceAccountName=sa", True),
        ("spec.hostNetwork=false", True),
        ("spec.hostNetwork=true", False),
        ("status.phase!=Succeeded,status.phase!=Failed", True),
        ("status.podIP=10.0.0.1", True),
        (r"status.podIPs=10.0.0.1\,fd00::1", True),
        ("status.nominatedNodeName=", True),
    ],
)
def test_selects_pods(text: str, expected: bool) -> None:
    assert pods(text).matches(POD) is expected


@pytest.mark.spec("KA-4.3")
def test_unset_fields_compare_as_empty_or_false() -> None:
    assert pods("spec.nodeName=,status.podIPs=,spec.hostNetwork=false").matches({"metadata": {"name": "p"}})
    assert pods("spec.hostNetwork=true").matches({"spec": {"hostNetwork": True}})
    nodes = parse("spec.unschedulable=false", "v1", "Node", False)
    assert nodes.matches({"metadata": {"name": "n"}})
    assert not nodes.matches({"spec": {"unschedulable": True}})


@pytest.mark.spec("KA-4.3")
@pytest.mark.parametrize(
    ("api_version", "kind", "namespaced", "text", "document"),
    [
        ("v1", "Namespace", False, "status.phase=Active", {"status": {"phase": "Active"}}),
        ("v1", "Secret", True, "type=Opaque", {"type": "Opaque"}),
        ("v1", "Service", True, "spec.clusterIP=None,spec.type=", {"spec": {"clusterIP": "None"}}),
        ("v1", "ConfigMap", True, "metadata.name=a", {"metadata": {"name": "a"}}),
        (DRA, "ResourceSlice", False, "spec.driver=d,spec.nodeName=n", {"spec": {"driver": "d", "nodeName": "n"}}),
        (f"{DRA}beta1", "ResourceSlice", False, "spec.nodeName=", {"spec": {"allNodes": True}}),
    ],
)
def test_each_kind_supports_its_own_fields(
    api_version: str, kind: str, namespaced: bool, text: str, document: Document
) -> None:
    assert parse(text, api_version, kind, namespaced).matches(document)


@pytest.mark.spec("KA-4.3")
@pytest.mark.parametrize(
    ("api_version", "text", "document", "expected"),
    [
        ("v1", "involvedObject.kind=Pod,involvedObject.name=p", CORE_EVENT, True),
        ("v1", "involvedObject.namespace=,involvedObject.uid=u", CORE_EVENT, True),
        ("v1", "involvedObject.fieldPath=spec,involvedObject.apiVersion=v1", CORE_EVENT, True),
        ("v1", "source=kubelet,reason=Started,type=Normal", CORE_EVENT, True),
        ("v1", "reportingComponent=", CORE_EVENT, True),
        ("v1", "involvedObject.name=p,source=default-scheduler", NEW_EVENT, True),
        ("v1", "reportingComponent=default-scheduler", NEW_EVENT, True),
        ("events.k8s.io/v1", "regarding.name=p,regarding.namespace=default", NEW_EVENT, True),
        ("events.k8s.io/v1", "reportingController=default-scheduler,reason=Scheduled", NEW_EVENT, True),
        ("events.k8s.io/v1", "regarding.name=p,regarding.kind=Pod", CORE_EVENT, True),
        ("events.k8s.io/v1", "regarding.name=q", CORE_EVENT, False),
    ],
)
def test_events_can_be_selected_in_both_shapes(api_version: str, text: str, document: Document, expected: bool) -> None:
    assert parse(text, api_version, "Event", True).matches(document) is expected


@pytest.mark.spec("KA-4.3")
@pytest.mark.parametrize(
    ("api_version", "kind", "namespaced", "text", "error"),
    [
        ("v1", "Pod", True, "spec.foo=x", "field label not supported: spec.foo"),
        ("v1", "Pod", True, "=x", "field label not supported: "),
        ("v1", "Pod", True, " metadata.name=x", "field label not supported:  metadata.name"),
        ("v1", "Node", False, "metadata.namespace=x", "field label not supported: metadata.namespace"),
        ("v1", "Event", True, "regarding.name=x", "field label not supported: regarding.name"),
        ("events.k8s.io/v1", "Event", True, "source=x", "field label not supported: source"),
        (DRA, "ResourceSlice", False, "x=y", f"field label not supported for {DRA}, Kind=ResourceSlice: x"),
        (DRA, "ResourceClaim", True, "x=y", f'{NOT_KNOWN}, "metadata.namespace"'),
        (DRA, "DeviceClass", False, "x=y", NOT_KNOWN),
        ("v1", "Pod", True, "metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("v1", "Pod", True, r"metadata.name=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("v1", "Pod", True, "metadata.name=\\", "invalid field selector: invalid escape sequence: \\"),
        ("v1", "Pod", True, "metadata.name=a=b", "invalid field selector: unescaped character in value: ="),
        ("v1", "Pod", True, "metadata.name===a", "invalid field selector: unescaped character in value: ="),
    ],
)
def test_unsupported_fields_are_rejected(api_version: str, kind: str, namespaced: bool, text: str, error: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse(text, api_version, kind, namespaced)
    assert str(caught.value) == error


def test_a_selector_that_is_too_long_is_refused() -> None:
    with pytest.raises(BadRequest, match="at most"):
        pods("a" * (MAX_TEXT + 1))


def test_requirements_carry_the_stored_names() -> None:
    assert pods("spec.host!=n1").requirements == (FieldRequirement("spec.nodeName", "!=", "n1"),)
    events = parse("regarding.uid=u,reportingController=c", "events.k8s.io/v1", "Event", True)
    assert str(events) == "involvedObject.uid=u,reportingComponent=c"


def test_an_exact_value_is_known_only_where_it_is_required() -> None:
    selector = pods("spec.host=n1,status.phase!=Failed,metadata.namespace=")
    assert selector.exact("spec.nodeName") == "n1"
    assert selector.exact("metadata.namespace") == ""
    assert selector.exact("status.phase") is None
    assert selector.exact("metadata.name") is None


def test_the_empty_selector_selects_everything() -> None:
    assert pods("") == EVERYTHING
    assert EVERYTHING.selects_everything
    assert not pods("metadata.name=p").selects_everything


@pytest.mark.parametrize("document", [{}, {"metadata": None}, {"metadata": [], "status": {"podIPs": {}}, "spec": "x"}])
def test_documents_of_any_shape_are_compared(document: Document) -> None:
    for field in selectable_fields("v1", "Pod", True):
        assert pods(f"{field}!=x").matches(document)


names = st.sampled_from(sorted(set(selectable_fields("v1", "Pod", True)) - {"spec.host"}))
values = st.text(max_size=8) | st.text("a,=\\", max_size=8)
wanted = st.builds(FieldRequirement, names, st.sampled_from(("=", "!=")), values)


@given(values)
def test_escaping_is_undone(value: str) -> None:
    assert unescape(escape(value)) == value


@given(st.lists(wanted, max_size=4))
def test_the_text_reads_back_as_the_same_requirements(requirements: list[FieldRequirement]) -> None:
    text = ",".join(map(str, requirements))
    selector = pods(text)
    assert sorted(selector.requirements, key=str) == sorted(requirements, key=str)
    assert pods(str(selector)) == selector


@given(names, values)
def test_unequal_is_the_opposite_of_equal(name: str, value: str) -> None:
    equal, unequal = (FieldSelector((FieldRequirement(name, op, value),)) for op in ("=", "!="))
    assert equal.matches(POD) != unequal.matches(POD)


@given(st.text(max_size=20) | st.text("metadata.nm=!,\\", max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert pods(str(pods(text))) == pods(text)
    except BadRequest as e:
        assert str(e)
