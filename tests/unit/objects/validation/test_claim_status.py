from typing import Any

import pytest

from devlet.errors import Cause
from devlet.objects.documents import Document
from devlet.objects.validation import claim_status
from devlet.objects.validation.field_errors import (
    duplicate,
    forbidden,
    invalid,
    invalid_omitted,
    required,
    too_long,
    too_many,
)

RESULT: Document = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
SHARED: Document = {**RESULT, "device": "y", "shareID": "8d8b3c9e-6c1f-4d4c-a7a5-0f6a1cbd9d1c"}
ALLOCATION: Document = {"devices": {"results": [RESULT, SHARED]}}
POD: Document = {"resource": "pods", "name": "p", "uid": "1"}
R, D = "status.reservedFor", "status.devices[0]"
NOT_ALLOCATED = "may not be specified when `allocated` is not set"
DELETING = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"


def claim(deleting: bool = False, **status: Any) -> Document:
    metadata = {"name": "c", **({"deletionTimestamp": "2024-01-01T00:00:00Z"} if deleting else {})}
    return {"metadata": metadata, "spec": {"devices": {"requests": [{"name": "r"}]}}, "status": status}


def update(new: Document, old: Document) -> list[Cause]:
    return list(claim_status.check_update(new, old))


def reserve(*consumers: Document) -> list[Cause]:
    return update(claim(allocation=ALLOCATION, reservedFor=list(consumers)), claim(allocation=ALLOCATION))


def report(**members: Any) -> list[Cause]:
    identity = {"driver": "d", "pool": "p", "device": "x"}
    return update(
        claim(allocation=ALLOCATION, devices=[{**identity, **members}]),
        claim(allocation=ALLOCATION),
    )


@pytest.mark.spec("KA-7.3.4")
def test_a_claim_is_allocated_reserved_and_released_again() -> None:
    free, held = claim(), claim(allocation=ALLOCATION, reservedFor=[POD])
    assert update(held, free) == update(free, held) == update(held, held) == []


@pytest.mark.spec("AL-2.15")
@pytest.mark.spec("KA-7.3.4")
def test_an_allocation_never_changes() -> None:
    changed = {"devices": {"results": [RESULT]}}
    causes = update(claim(allocation=changed), claim(allocation=ALLOCATION))
    assert causes == [invalid("status.allocation", changed, "field is immutable")]


@pytest.mark.spec("AL-2.15")
def test_a_new_allocation_is_checked() -> None:
    bad = {"devices": {"results": [{**RESULT, "driver": ""}]}}
    assert update(claim(allocation=bad), claim()) == [required("status.allocation.devices.results[0].driver")]


@pytest.mark.spec("AL-2.14")
@pytest.mark.parametrize("member", ["resource", "name", "uid"])
def test_a_consumer_is_named_completely(member: str) -> None:
    assert reserve({**POD, member: ""}) == [required(f"{R}[0].{member}")]


@pytest.mark.spec("AL-2.14")
def test_a_consumer_is_listed_once() -> None:
    assert reserve(POD, {**POD, "name": "q"}) == [duplicate(f"{R}[1]", "1")]


@pytest.mark.spec("AL-2.14")
def test_256_consumers_share_a_claim() -> None:
    pods = [{**POD, "uid": str(i)} for i in range(257)]
    assert reserve(*pods[:256]) == []
    assert reserve(*pods) == [too_many(R, 257, 256)]


@pytest.mark.spec("AL-2.14")
@pytest.mark.spec("KA-7.3.4")
def test_a_reservation_needs_an_allocation() -> None:
    assert update(claim(reservedFor=[POD]), claim()) == [forbidden(R, NOT_ALLOCATED)]
    held = claim(allocation=ALLOCATION, reservedFor=[POD])
    assert update(claim(reservedFor=[POD]), held) == [forbidden(R, NOT_ALLOCATED)]


@pytest.mark.spec("AL-2.14")
@pytest.mark.spec("KA-7.3.4")
def test_reservations_only_disappear_while_the_claim_is_being_deleted() -> None:
    other = {**POD, "uid": "2"}
    held = claim(True, allocation=ALLOCATION, reservedFor=[POD, other])
    assert update(claim(True, allocation=ALLOCATION, reservedFor=[other]), held) == []
    more = claim(True, allocation=ALLOCATION, reservedFor=[POD, {**POD, "uid": "3"}])
    assert update(more, held) == [forbidden(R, DELETING)]


@pytest.mark.spec("AL-2.16")
def test_a_full_report_about_a_device_is_accepted() -> None:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "t", "reason": "Ok"}
    network = {"interfaceName": "eth0", "hardwareAddress": "ea:9f", "ips": ["10.9.8.7/24", "2001:db8::1/64"]}
    assert report(conditions=[condition], data={"a": 1}, networkData=network) == []
    assert report(device="y", shareID=SHARED["shareID"]) == []


@pytest.mark.spec("AL-2.16")
@pytest.mark.spec("KA-7.3.5")
@pytest.mark.parametrize(
    ("members", "cause"),
    [
        ({"device": "z"}, invalid(D, "d/p/z", "must be an allocated device in the claim")),
        ({"device": "y"}, invalid(D, "d/p/y", "must be an allocated device in the claim")),
        ({"conditions": [{}] * 9}, too_many(f"{D}.conditions", 9, 8)),
        ({"data": {"s": "x" * 10240}}, too_long(f"{D}.data", 10240)),
        ({"data": "text"}, invalid_omitted(f"{D}.data", "must be a valid JSON object")),
        ({"networkData": {"interfaceName": "x" * 257}}, too_long(f"{D}.networkData.interfaceName", 256)),
        ({"networkData": {"hardwareAddress": "x" * 129}}, too_long(f"{D}.networkData.hardwareAddress", 128)),
        ({"networkData": {"ips": [f"10.0.0.{i}/8" for i in range(17)]}}, too_many(f"{D}.networkData.ips", 17, 16)),
        ({"networkData": {"ips": ["10.0.0.1/8"] * 2}}, duplicate(f"{D}.networkData.ips[1]", "10.0.0.1/8")),
    ],
)
def test_a_bad_report_is_refused(members: Document, cause: Cause) -> None:
    assert report(**members) == [cause]


@pytest.mark.spec("AL-2.16")
@pytest.mark.parametrize(
    "text", ["300.9.8.0/24", "10.0.0.1", "10.0.0.1/33", "x/1", "10.0.0.1/255.0.0.0", "/", "::1/-1"]
)
def test_an_address_has_a_prefix_length(text: str) -> None:
    detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
    assert report(networkData={"ips": [text]}) == [invalid(f"{D}.networkData.ips[0]", text, detail)]


@pytest.mark.spec("AL-2.16")
@pytest.mark.parametrize(
    ("text", "canonical"), [("010.009.008.000/24", "10.9.8.0/24"), ("2001:0db8::1/64", "2001:db8::1/64")]
)
def test_an_address_is_in_canonical_form(text: str, canonical: str) -> None:
    expected = invalid(f"{D}.networkData.ips[0]", text, f'must be in canonical form ("{canonical}")')
    assert report(networkData={"ips": [text]}) == [expected]


@pytest.mark.spec("AL-2.16")
def test_a_device_is_reported_once() -> None:
    identity = {"driver": "d", "pool": "p", "device": "x"}
    causes = update(claim(allocation=ALLOCATION, devices=[identity, identity]), claim(allocation=ALLOCATION))
    assert causes == [duplicate("status.devices[1]", "d/p/x")]
