import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import core
from devlet.objects.validation.field_errors import duplicate, forbidden, invalid, not_supported, required, too_long

TAINT = {"key": "a.io/b", "effect": "NoSchedule"}
IMMUTABLE = "field is immutable when `immutable` is set"


@pytest.mark.parametrize(
    ("document", "cause"),
    [
        (
            {"spec": {"taints": [{**TAINT, "key": "a b"}]}},
            invalid("spec.taints[0].key", "a b", names.label_key("a b")[0]),
        ),
        ({"spec": {"taints": [{"key": "a"}]}}, required("spec.taints[0].effect")),
        (
            {"spec": {"taints": [{"key": "a", "effect": "None"}]}},
            not_supported("spec.taints[0].effect", "None", ("NoSchedule", "PreferNoSchedule", "NoExecute")),
        ),
        ({"spec": {"taints": [TAINT, TAINT]}}, duplicate("spec.taints[1]", TAINT)),
        (
            {"status": {"capacity": {"cpu": "-1"}}},
            invalid("status.capacity[cpu]", "-1", "must be greater than or equal to 0"),
        ),
        (
            {"status": {"allocatable": {"a b": "1"}}},
            invalid("status.allocatable[a b]", "a b", names.qualified_name("a b")[0]),
        ),
    ],
)
def test_a_bad_node_is_refused(document: Document, cause: Cause) -> None:
    assert list(core.check_node(document)) == [cause]


def test_a_node_with_taints_and_capacity_is_accepted() -> None:
    document = {"spec": {"taints": [TAINT]}, "status": {"capacity": {"cpu": "4", "a.io/gpu": "0"}}}
    assert list(core.check_node(document)) == []


def test_the_finalizers_of_a_namespace_are_known_or_have_a_domain() -> None:
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    document = {"spec": {"finalizers": ["kubernetes", "a.io/b", "mine"]}}
    assert list(core.check_namespace(document)) == [invalid("spec.finalizers[2]", "mine", detail)]


@pytest.mark.parametrize(
    ("document", "cause"),
    [
        ({"data": {"a/b": ""}}, invalid("data[a/b]", "a/b", names.config_key("a/b")[0])),
        ({"binaryData": {"..": ""}}, invalid("binaryData[..]", "..", "must not be '..'")),
        (
            {"data": {"a": ""}, "binaryData": {"a": ""}},
            invalid("data[a]", "a", "duplicate of key present in binaryData"),
        ),
        ({"data": {"a": "x" * (2**20 + 1)}}, too_long("data", 2**20)),
    ],
)
def test_a_bad_config_map_is_refused(document: Document, cause: Cause) -> None:
    assert list(core.check_config_map(document)) == [cause]


@pytest.mark.parametrize(
    ("document", "cause"),
    [
        ({"data": {"a/b": ""}}, invalid("data[a/b]", "a/b", names.config_key("a/b")[0])),
        ({"data": {"a": "QUFB" * (2**20 // 3 + 1)}}, too_long("data", 2**20)),
        ({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}, required("data[tls.key]")),
        (
            {"type": "kubernetes.io/service-account-token"},
            required("metadata.annotations[kubernetes.io/service-account.name]"),
        ),
    ],
)
def test_a_bad_secret_is_refused(document: Document, cause: Cause) -> None:
    assert list(core.check_secret(document)) == [cause]


def test_a_secret_of_a_mebibyte_is_accepted() -> None:
    assert list(core.check_secret({"type": "Opaque", "data": {"a": "QUFB" * (2**20 // 3)}})) == []


@pytest.mark.spec("KA-7.3.9")
def test_an_immutable_config_map_keeps_its_data() -> None:
    stored = {"immutable": True, "data": {"a": "b"}}
    assert list(core.check_config_map_update({**stored, "metadata": {"labels": {}}}, stored)) == []
    changed = {**stored, "data": {"a": "c"}, "binaryData": {"d": ""}}
    causes = list(core.check_config_map_update(changed, stored))
    assert causes == [forbidden("data", IMMUTABLE), forbidden("binaryData", IMMUTABLE)]
    assert list(core.check_config_map_update({"data": {"a": "b"}}, stored)) == [forbidden("immutable", IMMUTABLE)]


@pytest.mark.spec("KA-7.3.9")
def test_a_mutable_config_map_may_change_and_become_immutable() -> None:
    assert list(core.check_config_map_update({"immutable": True, "data": {"a": "c"}}, {"data": {"a": "b"}})) == []


@pytest.mark.spec("KA-7.3.9")
def test_a_secret_keeps_its_type() -> None:
    causes = list(core.check_secret_update({"type": "b"}, {"type": "a", "data": {}}))
    assert causes == [invalid("type", "b", "field is immutable")]
    stored = {"type": "a", "immutable": True, "data": {"k": "QQ=="}}
    assert list(core.check_secret_update({**stored, "data": {}}, stored)) == [forbidden("data", IMMUTABLE)]


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        ({"leaseDurationSeconds": 15, "leaseTransitions": 0, "holderIdentity": "me"}, []),
        ({"holderIdentity": "", "leaseDurationSeconds": 1}, []),
        ({"leaseDurationSeconds": 0}, [invalid("spec.leaseDurationSeconds", 0, "must be greater than 0")]),
        ({"leaseTransitions": -1}, [invalid("spec.leaseTransitions", -1, "must be greater than or equal to 0")]),
    ],
)
def test_a_lease_lasts_for_some_time(spec: Document, causes: list[Cause]) -> None:
    assert list(core.check_lease({"spec": spec})) == causes


def priority(name: str = "high", **members: object) -> Document:
    return {"metadata": {"name": name}, "value": 10, **members}


@pytest.mark.parametrize(
    ("document", "cause"),
    [
        (
            priority(value=1_000_000_001),
            forbidden("value", "maximum allowed value of a user defined priority is 1000000000"),
        ),
        (
            priority("system-mine"),
            forbidden(
                "metadata.name",
                "priority class names with 'system-' prefix are reserved for system use only. error: system-mine",
            ),
        ),
        (
            priority(preemptionPolicy="Maybe"),
            not_supported("preemptionPolicy", "Maybe", ("PreemptLowerPriority", "Never")),
        ),
    ],
)
def test_a_bad_priority_class_is_refused(document: Document, cause: Cause) -> None:
    assert list(core.check_priority_class(document)) == [cause]


def test_the_system_priority_classes_are_accepted() -> None:
    assert list(core.check_priority_class(priority("system-node-critical", value=2_000_001_000))) == []


def test_a_priority_class_keeps_its_value() -> None:
    causes = list(core.check_priority_class_update(priority(value=11, preemptionPolicy="Never"), priority()))
    assert causes == [
        forbidden("value", "may not be changed in an update."),
        invalid("preemptionPolicy", "Never", "field is immutable"),
    ]
