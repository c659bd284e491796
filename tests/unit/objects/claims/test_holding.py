"""What a claim holds, and what excludes it."""

from devlet.objects.claims.overlaps import Holding, holdings_of
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName, ShareID
from devlet.objects.types.claim import DeviceResult

GPU, POOL = DriverName("gpu.example.com"), PoolName("n1")


def identity(name: str = "gpu-0") -> DeviceIdentity:
    return DeviceIdentity(GPU, POOL, DeviceName(name))


def test_a_device_excludes_itself_unless_it_is_for_admin_access_or_both_have_a_share() -> None:
    whole, share = Holding(identity()), Holding(identity(), "s")
    assert whole.excludes(whole) and whole.excludes(share) and share.excludes(whole) and share.excludes(share)
    assert not share.excludes(Holding(identity(), "t")) and not whole.excludes(Holding(identity("gpu-1")))
    admin = Holding(identity(), admin=True)
    assert not admin.excludes(whole) and not whole.excludes(admin)


def test_an_allocation_says_what_is_a_share_and_what_is_for_admin_access() -> None:
    share = DeviceResult(driver=GPU, pool=POOL, device=DeviceName("gpu-0"), share_id=ShareID("s"))
    admin = DeviceResult(driver=GPU, pool=POOL, device=DeviceName("gpu-0"), admin_access=True)
    assert [*holdings_of([share, admin])] == [Holding(identity(), "s"), Holding(identity(), admin=True)]
