import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import claim_template
from devlet.objects.validation.field_errors import forbidden, invalid, required
from devlet.objects.validation.selectors import accept_any

EXACTLY = {"deviceClassName": "gpu", "allocationMode": "All"}
SPEC = {"spec": {"devices": {"requests": [{"name": "r", "exactly": EXACTLY}]}}}


def check(spec: Document) -> list[Cause]:
    return list(claim_template.check({"spec": spec}, accept_any))


def test_labels_and_annotations_are_handed_on() -> None:
    assert check({**SPEC, "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}) == []


@pytest.mark.parametrize(
    ("metadata", "cause"),
    [
        ({"name": "x"}, forbidden("spec.metadata.name", "cannot be set")),
        ({"finalizers": ["a/b"]}, forbidden("spec.metadata.finalizers", "cannot be set")),
        ({"labels": {"a": "b c"}}, invalid("spec.metadata.labels", "b c", names.label_value("b c")[0])),
    ],
)
def test_nothing_else_may_be_in_the_metadata(metadata: Document, cause: Cause) -> None:
    assert check({**SPEC, "metadata": metadata}) == [cause]


def test_the_claim_inside_is_checked() -> None:
    (cause,) = check({"spec": {"devices": {"requests": [{"name": "r"}]}}})
    assert cause.field == "spec.spec.devices.requests[0]"
    (cause,) = check({"spec": {"devices": {"config": [{}]}}})
    assert cause == required("spec.spec.devices.config[0].opaque")


@pytest.mark.spec("AL-2.02")
@pytest.mark.spec("KA-7.3.6")
def test_the_spec_never_changes() -> None:
    changed = {"spec": {"devices": {}}, "metadata": {"labels": {"a": "b"}}}
    assert list(claim_template.check_update({"spec": SPEC}, {"spec": SPEC})) == []
    assert list(claim_template.check_update({"spec": changed}, {"spec": SPEC})) == [
        invalid("spec", changed, "field is immutable")
    ]
