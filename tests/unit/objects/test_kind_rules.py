"""Which rules apply to which kind and which operation."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.errors import Cause
from devlet.objects import kind_rules
from devlet.objects.custom_resources import DEFINITION
from devlet.objects.documents import Document, copy
from devlet.objects.kind_rules import Rules
from devlet.objects.kinds import BUILT_IN, group_of
from devlet.objects.validation.field_errors import forbidden, invalid, required

RULES = Rules()
RESOURCE = "resource.k8s.io/v1"
UPDATE = "field is immutable"


def document(api_version: str, kind: str, namespace: str | None = "ns", **members: Any) -> Document:
    metadata = {"name": "x"} if namespace is None else {"name": "x", "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **members}


EXACTLY = {"deviceClassName": "c", "allocationMode": "All", "selectors": [{"cel": {"expression": "e"}}]}
CLAIM = document(RESOURCE, "ResourceClaim", spec={"devices": {"requests": [{"name": "r", "exactly": EXACTLY}]}})
TEMPLATE = document(RESOURCE, "ResourceClaimTemplate", spec={"metadata": {}, "spec": CLAIM["spec"]})
CLASS = document(RESOURCE, "DeviceClass", None, spec={"selectors": EXACTLY["selectors"]})
POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}
DEVICE: Document = {
    "name": "d",
    "attributes": {"a": {"string": "x"}, "b": {"version": "1.0.0"}, "c": {"int": 1}},
    "capacity": {"m": {"value": "1Gi", "requestPolicy": {"default": "1", "validRange": {"min": "1", "step": "1"}}}},
    "taints": [{"key": "k", "effect": "NoExecute"}],
    "allowMultipleAllocations": True,
    "bindingConditions": ["x"],
    "bindingFailureConditions": ["y"],
    "consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": "1"}}}],
}
SLICE = document(
    RESOURCE, "ResourceSlice", None, spec={"driver": "d.io", "pool": POOL, "nodeName": "n", "devices": [DEVICE]}
)
TAINT_RULE = document("resource.k8s.io/v1beta2", "DeviceTaintRule", None, spec={"taint": DEVICE["taints"][0]})
QUESTION = document("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest", None, spec={"driver": "d.io"})
POD = document(
    "v1",
    "Pod",
    spec={
        "containers": [{"name": "c", "image": "i", "resources": {"limits": {"a.io/gpu": "1"}}}],
        "restartPolicy": "Always",
        "dnsPolicy": "Default",
        "resourceClaims": [{"name": "r", "resourceClaimName": "c"}],
        "tolerations": [{"operator": "Exists"}],
    },
)
EVENT = document("v1", "Event", involvedObject={"namespace": "ns"})
OTHERS = [
    document("v1", "Node", None, spec={"taints": [{"key": "k", "effect": "NoExecute"}]}),
    document("v1", "Namespace", None, spec={"finalizers": ["kubernetes"]}),
    document("v1", "ConfigMap", data={"a": "b"}),
    document("v1", "Secret", type="Opaque", data={"a": "QQ=="}),
    document("v1", "ServiceAccount"),
    document("coordination.k8s.io/v1", "Lease", spec={"leaseDurationSeconds": 15}),
    document("scheduling.k8s.io/v1", "PriorityClass", None, value=5),
    document("example.com/v1", "Widget", spec={"anything": [1]}),
]
ALL = [CLAIM, TEMPLATE, CLASS, SLICE, TAINT_RULE, QUESTION, POD, EVENT, *OTHERS]


def kind_of(item: Document) -> str:
    return str(item["kind"])


@pytest.mark.parametrize("good", ALL, ids=kind_of)
def test_a_good_object_is_accepted_and_may_stay_as_it_is(good: Document) -> None:
    assert kind_rules.validate_create(good, RULES) == []
    assert kind_rules.validate_update(good, good, RULES) == []
    assert kind_rules.validate_status_update(good, good, RULES) == []
    assert kind_rules.warnings(good) == kind_rules.warnings(good, good) == []


@pytest.mark.spec("AL-2.01")
@pytest.mark.parametrize("good", ALL, ids=kind_of)
def test_every_kind_needs_a_valid_name(good: Document) -> None:
    nameless = {**good, "metadata": {**good["metadata"], "name": "Not!"}}
    causes = kind_rules.validate_create(nameless, RULES)
    assert [(cause.reason, cause.field) for cause in causes] == [("FieldValueInvalid", "metadata.name")]


def test_every_entry_of_the_table_is_for_a_kind_that_exists() -> None:
    kinds = (*BUILT_IN, DEFINITION)
    assert kind_rules.RULES.keys() <= {(group_of(kind.storage_version), kind.kind) for kind in kinds}


def test_the_scope_of_built_in_kinds_is_known() -> None:
    for kind in BUILT_IN:
        causes = kind_rules.validate_create(document(kind.storage_version, kind.kind, None), RULES)
        assert (required("metadata.namespace") in causes) is kind.namespaced


@pytest.mark.parametrize("kind", ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"])
def test_a_role_or_binding_has_the_name_of_a_path_segment(kind: str) -> None:
    """As kubectl and Kubernetes' own roles have it: `system:node`, `Team A`."""
    good = document("rbac.authorization.k8s.io/v1", kind, None if kind.startswith("Cluster") else "ns")
    for name in ("system:demo", "Team A", "x" * 300):
        good["metadata"]["name"] = name
        assert [each for each in kind_rules.validate_create(good, RULES) if each.field.startswith("metadata")] == []
    for name in ("a/b", "50%", "..", ""):
        good["metadata"]["name"] = name
        assert [each.field for each in kind_rules.validate_create(good, RULES)][:1] == ["metadata.name"]


def test_a_namespace_has_the_name_of_a_label() -> None:
    dotted = {**document("v1", "Namespace", None), "metadata": {"name": "a.b"}}
    assert kind_rules.validate_create(dotted, RULES) == [invalid("metadata.name", "a.b", "must not contain dots")]


@pytest.mark.spec("AL-2.02")
@pytest.mark.spec("KA-7.3.3")
def test_the_spec_of_a_claim_never_changes_and_is_not_checked_again() -> None:
    bad = {**CLAIM, "spec": {"devices": {"requests": [{"name": "Not!"}]}}}
    assert kind_rules.validate_update(bad, bad, RULES) == []
    assert kind_rules.validate_update(bad, CLAIM, RULES) == [invalid("spec", bad["spec"], UPDATE)]
    labelled = {**CLAIM, "metadata": {**CLAIM["metadata"], "labels": {"a": "b"}}}
    assert kind_rules.validate_update(labelled, CLAIM, RULES) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TEMPLATE, {**TEMPLATE, "spec": {}}),
        (QUESTION, {**QUESTION, "spec": {"driver": "other"}}),
    ],
)
def test_some_specs_never_change(old: Document, new: Document) -> None:
    assert kind_rules.validate_update(new, old, RULES) == [invalid("spec", new["spec"], UPDATE)]


@pytest.mark.spec("AL-2.09")
@pytest.mark.parametrize(
    ("good", "path"),
    [
        (CLAIM, "spec.devices.requests[0].exactly.selectors[0].cel.expression"),
        (TEMPLATE, "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression"),
        (CLASS, "spec.selectors[0].cel.expression"),
    ],
    ids=["claim", "template", "class"],
)
def test_expressions_are_given_to_the_compiler(good: Document, path: str) -> None:
    asked: list[tuple[str, bool]] = []

    def refuse(expression: str, stored: bool) -> list[Cause]:
        asked.append((expression, stored))
        return [forbidden("", "too complex, exceeds cost limit")]

    causes = kind_rules.validate_create(good, Rules(check_selector=refuse))
    assert causes == [forbidden(path, "too complex, exceeds cost limit")]
    assert asked == [("e", False)]


@pytest.mark.spec("KA-7.4")
def test_only_events_of_the_new_api_must_be_complete() -> None:
    assert kind_rules.validate_create(EVENT, Rules(api_version="v1")) == []
    causes = kind_rules.validate_create(EVENT, Rules(api_version="events.k8s.io/v1"))
    assert {"eventTime", "reportingController", "reportingInstance", "action", "reason"} <= {c.field for c in causes}


@pytest.mark.spec("AL-8-admin")
@pytest.mark.spec("KA-7.3.10")
def test_admin_access_depends_on_the_namespace() -> None:
    wanted = copy(CLAIM)
    wanted["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] = True
    namespace = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    assert [c.field for c in kind_rules.admission_errors(wanted, None, None)] == [
        "spec.devices.requests[0].adminAccess"
    ]
    assert kind_rules.admission_errors(wanted, None, namespace) == []
    assert kind_rules.admission_errors(wanted, wanted, None) == []
    assert kind_rules.admission_errors(POD, None, None) == []


@pytest.mark.spec("AL-2.16")
def test_the_status_of_a_claim_is_checked_by_its_own_operation() -> None:
    reserved = {**CLAIM, "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}
    assert kind_rules.validate_update(reserved, CLAIM, RULES) == []
    assert [c.field for c in kind_rules.validate_status_update(reserved, CLAIM, RULES)] == ["status.reservedFor"]


def test_an_upper_case_driver_is_worth_a_warning() -> None:
    (warning,) = kind_rules.warnings({**SLICE, "spec": {**SLICE["spec"], "driver": "GPU.example.com"}})
    assert "lowercase" in warning


STATUSES: dict[str, Document] = {
    "ResourceClaim": {
        "allocation": {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        "devices": [{"driver": "d", "pool": "p", "device": "x", "networkData": {"ips": ["10.0.0.1/8"]}}],
    },
    "Pod": {"resourceClaimStatuses": [{"name": "r"}], "extendedResourceClaimStatus": {"requestMappings": [{}]}},
}
OTHER_VALUES: dict[type, st.SearchStrategy[Any]] = {
    str: st.text(max_size=70) | st.sampled_from(["", "a/b/c", "10.0.0.1/8", "1Gi", "-1", "Exists", "Equal", "All"]),
    int: st.integers(-(2**63), 2**63 - 1),
    bool: st.booleans(),
    list: st.just([]),
    dict: st.just({}),
}


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in [(value, key), *places(item)]]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_validation_of_any_values_returns_a_list_of_causes(data: st.DataObject) -> None:
    good = data.draw(st.sampled_from(ALL))
    changed = {**copy(good), "status": copy(STATUSES.get(good["kind"], {}))}
    for _ in range(data.draw(st.integers(1, 3))):
        target, key = data.draw(
            st.sampled_from(places({"m": changed["metadata"], "s": changed.get("spec", {}), "t": changed["status"]}))
        )
        choice = data.draw(st.sampled_from(["replace", "remove", "repeat"]))
        if choice == "remove":
            del target[key]
        elif choice == "repeat" and isinstance(target, list):
            target.extend(copy(target))
        elif type(target[key]) in OTHER_VALUES:
            target[key] = data.draw(OTHER_VALUES[type(target[key])])
    for causes in (
        kind_rules.validate_create(changed, RULES),
        kind_rules.validate_update(changed, good, RULES),
        kind_rules.validate_update(good, changed, RULES),
        kind_rules.validate_status_update(changed, good, RULES),
        kind_rules.validate_status_update(good, changed, RULES),
        kind_rules.admission_errors(changed, None, None),
        kind_rules.admission_errors(changed, good, changed),
    ):
        assert all(cause.reason and cause.field and cause.message for cause in causes)
    assert isinstance(kind_rules.warnings(changed, good), list)
