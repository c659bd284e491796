"""Rules for ResourceClaimTemplate.spec: a claim's spec, and the labels and annotations of the claims made from it."""

from devlet.objects.documents import Document
from devlet.objects.validation import claim
from devlet.objects.validation.field_errors import Causes, forbidden, immutable
from devlet.objects.validation.metadata import check_annotations, check_labels
from devlet.objects.validation.selectors import SelectorCheck

_MAY_CARRY = ("labels", "annotations")


def check(document: Document, check_selector: SelectorCheck) -> Causes:
    spec = document.get("spec") or {}
    metadata = spec.get("metadata") or {}
    for member, value in metadata.items():
        if member not in _MAY_CARRY and value:
            yield forbidden(f"spec.metadata.{member}", "cannot be set")
    yield from check_labels(metadata.get("labels") or {}, "spec.metadata.labels")
    yield from check_annotations(metadata.get("annotations") or {}, "spec.metadata.annotations")
    yield from claim.check_spec(spec.get("spec") or {}, "spec.spec", check_selector)


def check_update(document: Document, old: Document) -> Causes:
    yield from immutable("spec", document.get("spec") or {}, old.get("spec") or {})
