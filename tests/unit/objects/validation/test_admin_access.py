import pytest

from devlet.objects.documents import Document
from devlet.objects.validation import admin_access
from devlet.objects.validation.field_errors import forbidden

DETAIL = (
    "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"
)
DEVICES = {"requests": [{"name": "a", "exactly": {}}, {"name": "b", "exactly": {"adminAccess": True}}]}
CLAIM = {"kind": "ResourceClaim", "spec": {"devices": DEVICES}}
TEMPLATE = {"kind": "ResourceClaimTemplate", "spec": {"spec": {"devices": DEVICES}}}


def namespace(value: str | None) -> Document:
    labels = {} if value is None else {admin_access.NAMESPACE_LABEL: value}
    return {"metadata": {"name": "ns", "labels": labels}}


@pytest.mark.spec("AL-8-admin")
@pytest.mark.spec("KA-7.3.10")
@pytest.mark.parametrize("document", [CLAIM, TEMPLATE])
@pytest.mark.parametrize("unlabelled", [None, namespace(None), namespace("True"), namespace("")])
def test_admin_access_needs_the_exact_label(document: Document, unlabelled: Document | None) -> None:
    expected = [forbidden("spec.devices.requests[1].adminAccess", DETAIL)]
    assert list(admin_access.check_create(document, unlabelled)) == expected
    assert list(admin_access.check_create(document, namespace("true"))) == []


@pytest.mark.spec("AL-8-admin")
def test_access_that_is_not_wanted_needs_no_label() -> None:
    document = {"spec": {"devices": {"requests": [{"name": "a", "exactly": {"adminAccess": False}}]}}}
    assert list(admin_access.check_create(document, None)) == []


@pytest.mark.spec("AL-8-admin")
def test_an_allocation_with_admin_access_is_checked_when_it_is_written_first() -> None:
    free: Document = {"status": {}}
    held = {"status": {"allocation": {"devices": {"results": [{}, {"adminAccess": True}]}}}}
    expected = [forbidden("status.allocation.devices.results[1].adminAccess", DETAIL)]
    assert list(admin_access.check_status_update(held, free, namespace(None))) == expected
    assert list(admin_access.check_status_update(held, free, namespace("true"))) == []
    assert list(admin_access.check_status_update(held, held, namespace(None))) == []
    assert list(admin_access.check_status_update(free, held, namespace(None))) == []
