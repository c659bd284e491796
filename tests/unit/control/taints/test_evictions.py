"""When a pod must leave, and which claims no further pod may use."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from devlet.control.taints.device_taints import Taint
from devlet.control.taints.evictions import blocking, eviction, tolerated_until
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import DeviceIdentity
from devlet.objects.types.claim import DeviceToleration, ResourceClaim
from devlet.objects.types.slice import DeviceTaint

BEGIN = datetime(2025, 1, 1, tzinfo=UTC)


def taint(key: str = "k", after: int = 0, effect: str = "NoExecute", **rest: str) -> DeviceTaint:
    when = (BEGIN + timedelta(seconds=after)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return DeviceTaint(key=key, effect=effect, time_added=when, **rest)


def claim(*devices: str, tolerations: list[Document] | None = None) -> ResourceClaim:
    results = [
        {"request": "r", "driver": "d", "pool": "p", "device": each, "tolerations": tolerations or []}
        for each in devices
    ]
    return view(ResourceClaim, {"status": {"allocation": {"devices": {"results": results}}}})


def after(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


@pytest.mark.spec("DA-7.3c")
@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], 0),
        ([{"key": "k", "operator": "Exists"}], None),
        ([{"operator": "Exists", "toleration_seconds": 30}], 30),
        ([{"operator": "Exists", "toleration_seconds": -5}], 0),
        ([{"operator": "Exists", "toleration_seconds": 30}, {"operator": "Exists", "toleration_seconds": 20}], 20),
        ([{"operator": "Exists", "toleration_seconds": 30}, {"operator": "Exists"}], None),
        ([{"key": "other", "operator": "Exists"}], 0),
        ([{"key": "k", "operator": "Equal", "value": "v"}], 0),
        ([{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], 0),
        ([{"key": "k", "operator": "Exists", "effect": "NoExecute", "toleration_seconds": 7}], 7),
        ([{"operator": "Exists", "toleration_seconds": 2**63 - 1}], None),
    ],
)
def test_a_taint_is_tolerated_until(tolerations: list[dict[str, Any]], expected: int | None) -> None:
    found = tolerated_until(taint(), [DeviceToleration(**each) for each in tolerations])
    assert found == (None if expected is None else after(expected))


@pytest.mark.parametrize("since", [None, "yesterday"])
def test_a_taint_without_a_time_counts_from_the_beginning(since: str | None) -> None:
    assert tolerated_until(DeviceTaint(effect="NoExecute", time_added=since), []) == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.spec("DA-7.3d")
def test_the_earliest_time_counts_and_all_causes_are_listed() -> None:
    taints = {"a": [Taint(taint(after=50), "rule")], "b": [Taint(taint(after=20)), Taint(taint(after=90))], "c": []}
    found = eviction([claim("a", "c"), claim("b")], lambda device: taints[device.device])
    assert found is not None
    assert found.when == after(20)
    assert found.rules == {"rule"}
    assert str(found) == (
        "device d/p/a has taint k:NoExecute of DeviceTaintRule rule, device d/p/b has taint k:NoExecute, "
        "device d/p/b has taint k:NoExecute"
    )


def test_claims_without_devices_or_taints_evict_no_pod() -> None:
    assert eviction([ResourceClaim(), claim("a")], lambda _: []) is None
    assert eviction([claim("a")], lambda _: [Taint(taint(effect="NoSchedule"))]) is None


def test_tolerations_of_the_allocation_result_count() -> None:
    tolerant = claim("a", tolerations=[{"key": "k", "operator": "Exists"}])
    found = eviction([tolerant, claim("b")], lambda _: [Taint(taint())])
    assert found is not None
    assert [cause.device for cause in found.causes] == [DeviceIdentity("d", "p", "b")]  # type: ignore[arg-type]


# Sharing


def tolerant(*tolerations: Document) -> ResourceClaim:
    result = {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
    allocation = {"devices": {"results": [{**result, "tolerations": list(tolerations)}]}}
    return view(ResourceClaim, {"status": {"allocation": allocation}})


@pytest.mark.spec("DA-11.17a")
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_taint_that_the_claim_does_not_tolerate_blocks_sharing(effect: str) -> None:
    found = blocking(tolerant(), lambda _: [Taint(DeviceTaint(key="hot", value="very", effect=effect), "heat")])
    assert found == (
        f"device gpu.example.com/n1/gpu-0 has taint hot=very:{effect} of DeviceTaintRule heat, "
        "which the claim does not tolerate"
    )


@pytest.mark.parametrize(
    "toleration",
    [
        {"operator": "Exists"},
        {"key": "hot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
    ],
)
def test_a_tolerated_taint_does_not_block_sharing(toleration: Document) -> None:
    taint = Taint(DeviceTaint(key="hot", effect="NoExecute"))
    assert blocking(tolerant(toleration), lambda _: [taint]) is None


def test_claims_without_devices_or_taints_can_be_shared() -> None:
    assert blocking(tolerant(), lambda _: []) is None
    assert blocking(ResourceClaim(), lambda _: [Taint(DeviceTaint(effect="NoExecute"))]) is None
