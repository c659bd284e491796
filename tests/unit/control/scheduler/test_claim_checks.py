from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from devlet.control.scheduler.claim_checks import (
    Binding,
    binding,
    deadline,
    has_conditions,
    is_expired,
    missing_class,
    resolve,
)
from devlet.objects.documents import Document, view
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "pod-uid", "controller": True}
START = datetime(2026, 1, 1, tzinfo=UTC)


def claim(
    name: str = "c", spec: Document | None = None, status: Document | None = None, **metadata: Any
) -> ResourceClaim:
    metadata = {"name": name, "namespace": "ns", **metadata}
    return view(ResourceClaim, {"metadata": metadata, "spec": spec or {}, "status": status or {}})


def pod(*entries: Document, made: dict[str, str | None] | None = None) -> Pod:
    statuses = [{"name": name, "resourceClaimName": found} for name, found in (made or {}).items()]
    return view(
        Pod,
        {
            "metadata": {"name": "p", "namespace": "ns", "uid": "pod-uid"},
            "spec": {"resourceClaims": list(entries)},
            "status": {"resourceClaimStatuses": statuses},
        },
    )


def resolved(one: Pod, *claims: ResourceClaim) -> list[ResourceClaim] | str:
    known = {(each.metadata.namespace, each.metadata.name): each for each in claims}
    return resolve(one, lambda namespace, name: known.get((namespace, name)))


NAMED = {"name": "n", "resourceClaimName": "c"}
FROM_TEMPLATE = {"name": "t", "resourceClaimTemplateName": "template"}


# Before anything else


@pytest.mark.spec("DA-5.2a")
def test_claims_are_found_by_name_or_as_created_from_a_template() -> None:
    named, made = claim("c"), claim("t-1", ownerReferences=[OWNER])
    assert resolved(pod(NAMED, FROM_TEMPLATE, made={"t": "t-1"}), named, made) == [named, made]
    assert resolved(pod()) == []


@pytest.mark.spec("DA-5.2a")
def test_an_entry_that_needs_no_claim_is_skipped() -> None:
    assert resolved(pod(FROM_TEMPLATE, made={"t": None})) == []


def test_a_claim_of_two_entries_is_returned_once() -> None:
    one = claim("c")
    assert resolved(pod(NAMED, NAMED | {"name": "again"}), one) == [one]


@pytest.mark.spec("DA-5.2b")
@pytest.mark.parametrize(
    ("one", "claims", "reason"),
    [
        (pod(FROM_TEMPLATE), [], 'pod "ns/p": ResourceClaim not created yet'),
        (pod({"name": "x"}), [], 'pod "ns/p", spec.resourceClaim "x": none of the supported fields are set'),
        (pod(NAMED), [], 'could not find ResourceClaim "ns/c"'),
        (pod(NAMED), [claim(deletionTimestamp="2026-01-01T00:00:00Z")], 'resourceclaim "c" is being deleted'),
        (
            pod(FROM_TEMPLATE, made={"t": "c"}),
            [claim(ownerReferences=[OWNER | {"uid": "other"}])],
            "ResourceClaim ns/c was not created for Pod ns/p (Pod is not owner)",
        ),
        (
            pod(FROM_TEMPLATE, made={"t": "c"}),
            [claim()],
            "ResourceClaim ns/c was not created for Pod ns/p (Pod is not owner)",
        ),
    ],
)
def test_a_pod_waits_for_its_claims_and_names_them(one: Pod, claims: list[ResourceClaim], reason: str) -> None:
    assert resolved(one, *claims) == reason


# Classes


def request(name: str, *classes: str, exactly: bool = True) -> Document:
    if exactly:
        return {"name": name, "exactly": {"deviceClassName": classes[0]}}
    return {"name": name, "firstAvailable": [{"name": f"s{i}", "deviceClassName": c} for i, c in enumerate(classes)]}


@pytest.mark.spec("DA-5.3a")
@pytest.mark.parametrize(
    ("requests", "reason"),
    [
        ([], ""),
        ([request("r", "gpu")], ""),
        ([request("q", "gpu"), request("r", "none")], "request r: device class none does not exist"),
        ([request("r", "gpu", "nic", exactly=False)], ""),
        ([request("r", "gpu", "none", exactly=False)], "request r/s1: device class none does not exist"),
        ([request("r", "")], "request r: unsupported request type"),
        ([{"name": "r"}], "resource claim ns/c, request r: unknown request type"),
    ],
)
def test_a_claim_waits_for_the_classes_of_its_requests(requests: list[Document], reason: str) -> None:
    assert missing_class(claim(spec={"devices": {"requests": requests}}), {"gpu", "nic"}.__contains__) == reason


# Binding conditions


def result(device: str = "d1", share: str | None = None, **more: Any) -> Document:
    made = {"request": "r", "driver": "drv", "pool": "p", "device": device, "bindingConditions": ["Ready", "Attached"]}
    return made | {"bindingFailureConditions": ["Broken"], "shareID": share} | more


def device(name: str = "d1", share: str | None = None, driver: str = "drv", **conditions: str) -> Document:
    reported = [
        {"type": type_, "status": status, "reason": "Why", "message": 'it "broke"'}
        for type_, status in conditions.items()
    ]
    return {"driver": driver, "pool": "p", "device": name, "shareID": share, "conditions": reported}


def allocated(*results: Document, devices: list[Document] | None = None, at: str | None = None) -> ResourceClaim:
    allocation = {"devices": {"results": list(results)}, "allocationTimestamp": at}
    return claim(status={"allocation": allocation, "devices": devices or []})


GOOD = {"Ready": "True", "Attached": "True"}


@pytest.mark.spec("DA-5.7a")
def test_devices_are_ready_when_all_their_conditions_are_true() -> None:
    assert binding(allocated(result(), devices=[device(**GOOD)])) == Binding("ready")
    assert binding(allocated(result(bindingConditions=[]))) == Binding("ready")
    assert binding(claim()) == Binding("ready")


@pytest.mark.spec("DA-5.7a")
@pytest.mark.parametrize(
    "devices",
    [
        [],
        [device(Ready="True")],
        [device(Ready="True", Attached="False")],
        [device("d2", **GOOD)],
        [device(driver="other", **GOOD)],
    ],
)
def test_conditions_of_other_devices_do_not_count(devices: list[Document]) -> None:
    found = binding(allocated(result(), devices=devices))
    assert found.state == "pending"
    assert found.message.endswith("drv/p/d1: Attached")


@pytest.mark.spec("DA-5.7b")
def test_a_failure_is_reported_even_if_another_device_is_pending() -> None:
    found = binding(allocated(result("d0"), result(), devices=[device(Broken="True", **GOOD)]))
    assert found == Binding("failed", r'device binding failed: claim=c, reason=Why, message="it \"broke\""')
    assert binding(allocated(result(), devices=[device(Broken="False", **GOOD)])).state == "ready"


@pytest.mark.spec("DA-11.19")
def test_two_shares_of_a_device_have_their_own_conditions() -> None:
    one, other = result(share="s1"), result(share="s2")
    assert binding(allocated(one, other, devices=[device(share="s1", **GOOD)])).state == "pending"
    both = [device(share="s1", **GOOD), device(share="s2", **GOOD)]
    assert binding(allocated(one, other, devices=both)).state == "ready"
    assert binding(allocated(one, devices=[device(**GOOD)])).state == "pending"
    failed = [device(share="s2", Broken="True")]
    assert binding(allocated(one, devices=[device(share="s1", **GOOD), *failed])).state == "ready"


@pytest.mark.spec("DA-5.4b")
def test_conditions_must_be_met_within_the_timeout() -> None:
    waiting = allocated(result(), at="2026-01-01T00:00:00Z")
    assert deadline(waiting, 600) == START + timedelta(minutes=10)
    assert not is_expired(waiting, 600, START + timedelta(minutes=10))
    assert is_expired(waiting, 600, START + timedelta(minutes=10, seconds=1))
    ready = allocated(result(), devices=[device(**GOOD)], at="2026-01-01T00:00:00Z")
    assert not is_expired(ready, 600, START + timedelta(hours=1))


def test_there_is_no_deadline_without_conditions_or_a_timestamp() -> None:
    assert deadline(allocated(result()), 600) is None
    assert deadline(allocated(result(bindingConditions=[]), at="2026-01-01T00:00:00Z"), 600) is None
    assert deadline(claim(), 600) is None
    assert has_conditions(allocated(result()))
    assert not has_conditions(allocated(result(bindingConditions=[])))
