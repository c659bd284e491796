import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import pool_status_request
from devlet.objects.validation.field_errors import invalid, required, too_long, too_many

SPEC = {"driver": "d.io", "limit": 100}
POOL = {"driver": "d.io", "poolName": "p", "generation": 1}


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"driver": ""}, required("spec.driver")),
        ({"driver": "a_b"}, invalid("spec.driver", "a_b", names.dns_subdomain("a_b")[0])),
        ({"poolName": "A"}, invalid("spec.poolName", "A", names.dns_subdomain("A")[0])),
        ({"limit": 0}, invalid("spec.limit", 0, "must be greater than or equal to 1")),
        ({"limit": 1001}, invalid("spec.limit", 1001, "must be less than or equal to 1000")),
    ],
)
def test_a_bad_request_is_refused(changes: Document, cause: Cause) -> None:
    assert list(pool_status_request.check({"spec": {**SPEC, **changes}})) == [cause]


def test_a_good_request_is_accepted() -> None:
    assert list(pool_status_request.check({"spec": SPEC})) == []
    assert list(pool_status_request.check({"spec": {"driver": "D.io", "poolName": "p/q", "limit": 1000}})) == []


def test_the_spec_never_changes() -> None:
    changed = {**SPEC, "limit": 1}
    assert list(pool_status_request.check_update({"spec": changed}, {"spec": SPEC})) == [
        invalid("spec", changed, "field is immutable")
    ]


def answer(status: Document, old: Document | None = None) -> list[Cause]:
    return list(pool_status_request.check_status_update({"status": status}, {"status": old}))


def test_the_status_is_written_once() -> None:
    status, other = {"poolCount": 1, "pools": [POOL]}, {"poolCount": 2}
    assert answer(status) == answer(status, status) == []
    assert answer(other, status) == [invalid("status", other, "field is immutable")]


P = "status.pools[0]"


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"driver": ""}, required(f"{P}.driver")),
        ({"poolName": ""}, required(f"{P}.poolName")),
        ({"generation": -1}, invalid(f"{P}.generation", -1, "must be greater than or equal to 0")),
        ({"totalDevices": -1}, invalid(f"{P}.totalDevices", -1, "must be greater than or equal to 0")),
        ({"resourceSliceCount": 0}, invalid(f"{P}.resourceSliceCount", 0, "must be greater than or equal to 1")),
        ({"nodeName": "A"}, invalid(f"{P}.nodeName", "A", names.dns_subdomain("A")[0])),
        ({"validationError": "x" * 257}, too_long(f"{P}.validationError", 256)),
    ],
)
def test_a_bad_pool_is_refused(changes: Document, cause: Cause) -> None:
    assert answer({"pools": [{**POOL, **changes}]}) == [cause]


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        ({"poolCount": -1}, invalid("status.poolCount", -1, "must be greater than or equal to 0")),
        ({"pools": [{}] * 1001}, too_many("status.pools", 1001, 1000)),
        ({"conditions": [{}] * 11}, too_many("status.conditions", 11, 10)),
    ],
)
def test_a_bad_answer_is_refused(status: Document, cause: Cause) -> None:
    assert answer(status) == [cause]
