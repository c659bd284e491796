"""Identities of devices."""

from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName, ShareID, ShareIdentity


def identity(driver: str, pool: str, device: str) -> DeviceIdentity:
    return DeviceIdentity(DriverName(driver), PoolName(pool), DeviceName(device))


def test_a_device_is_known_by_driver_pool_and_name_together() -> None:
    assert identity("a", "p", "d") == identity("a", "p", "d")
    assert (
        len({identity("a", "p", "d"), identity("a", "p", "d"), identity("b", "p", "d"), identity("a", "q", "d")}) == 3
    )


def test_devices_are_shown_and_ordered_by_driver_pool_and_name() -> None:
    assert str(identity("a.example.com", "node1", "gpu-0")) == "a.example.com/node1/gpu-0"
    assert sorted([identity("b", "a", "a"), identity("a", "b", "a")])[0].driver == "a"


def test_a_share_is_a_device_with_an_id() -> None:
    device = identity("a", "p", "d")
    share = ShareIdentity(device, ShareID("u"))
    assert str(share) == "a/p/d/u"
    assert share != ShareIdentity(device, ShareID("v"))
    assert {share: 1}[ShareIdentity(identity("a", "p", "d"), ShareID("u"))] == 1
