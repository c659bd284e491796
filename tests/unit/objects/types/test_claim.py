"""Views of claims and templates."""

from devlet.objects.documents import Document, view
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName, ShareID, ShareIdentity
from devlet.objects.types.claim import ResourceClaim, ResourceClaimTemplate

DEVICE = DeviceIdentity(DriverName("d"), PoolName("p"), DeviceName("gpu-0"))
RESULT: Document = {"request": "r", "driver": "d", "pool": "p", "device": "gpu-0"}


def claim(**status: object) -> ResourceClaim:
    return view(ResourceClaim, {"metadata": {"name": "c", "uid": "u"}, "status": status})


def test_a_claim_without_requests_may_say_null() -> None:
    assert view(ResourceClaim, {"spec": {"devices": {"requests": None}}}).spec.devices.requests == ()


def test_a_request_is_exact_or_a_list_of_alternatives() -> None:
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "c", "count": 2, "capacity": {"requests": {"memory": "1Gi"}}}},
        {"name": "b", "firstAvailable": [{"name": "big", "deviceClassName": "c"}]},
    ]
    spec = {"devices": {"requests": requests, "config": [{"requests": ["a"], "opaque": {"driver": "d"}}]}}
    for devices in (
        view(ResourceClaim, {"spec": spec}).spec.devices,
        view(ResourceClaimTemplate, {"spec": {"spec": spec}}).spec.spec.devices,
    ):
        exact, alternatives = devices.requests
        assert exact.exactly is not None
        assert (exact.exactly.count, exact.exactly.admin_access) == (2, None)
        assert alternatives.exactly is None
        assert alternatives.first_available[0].name == "big"
        assert devices.config[0].requests == ("a",)
        assert devices.config[0].opaque is not None


def test_a_claim_holds_devices_once_it_is_allocated() -> None:
    assert claim().results == ()
    held = claim(allocation={"devices": {"results": [RESULT]}})
    assert (held.name, held.uid) == ("c", "u")
    assert [result.identity for result in held.results] == [DEVICE]


def test_a_result_with_an_id_is_a_share() -> None:
    shared = claim(allocation={"devices": {"results": [RESULT | {"shareID": "s"}, RESULT]}})
    assert [result.share for result in shared.results] == [ShareIdentity(DEVICE, ShareID("s")), None]


def test_a_driver_may_report_a_device_without_conditions() -> None:
    status = claim(devices=[{"driver": "d", "pool": "p", "device": "gpu-0", "conditions": None, "data": {"k": 1}}])
    device = status.status.devices[0]
    assert device.conditions == ()
    assert device.data == {"k": 1}
    assert device.identity == DEVICE
