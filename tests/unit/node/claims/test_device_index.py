from devlet.node.claims.device_index import DeviceIndex
from devlet.objects.claims.overlaps import Holding
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName
from devlet.objects.types.claim import PreparedDevice
from devlet.state.claim_entry import ClaimEntry
from tests.support.claim_specimens import GPU, NIC, claim, device, key


def identity(name: str = "d", driver: DriverName = GPU) -> DeviceIdentity:
    return DeviceIdentity(driver, PoolName("pool"), DeviceName(name))


def entry(**drivers: tuple[PreparedDevice, ...] | None) -> ClaimEntry:
    by_driver = {"gpu": GPU, "nic": NIC}
    return ClaimEntry("uid", "c", "default", frozenset({"p"}), {by_driver[name]: it for name, it in drivers.items()})


def test_a_claim_has_the_devices_of_its_allocation_and_of_its_answers() -> None:
    found = DeviceIndex()
    found.put(key("a"), entry(gpu=None), {GPU: claim(device="d").results})
    found.put(key("b"), entry(gpu=(device("e"),)), {})
    assert found.holders(Holding(identity())) == {key("a")} and found.holders(Holding(identity("e"))) == {key("b")}
    assert found.holders(Holding(identity("d", NIC))) == frozenset() == found.unclear(GPU)
    found.put(key("a"), entry(nic=(device("d"),)), {})
    found.remove(key("b"))
    found.remove(key("b"))
    assert not found.holders(Holding(identity())) and found.holders(Holding(identity("d", NIC))) == {key("a")}


def test_the_allocation_of_a_device_takes_precedence_over_the_answer() -> None:
    found = DeviceIndex()
    found.put(key("a"), entry(gpu=(device("d"),)), {GPU: claim(device="d", share="s").results})
    assert not found.holders(Holding(identity(), "t"))


def test_a_driver_that_named_no_device_may_have_prepared_any() -> None:
    found = DeviceIndex()
    for answer in (None, (), (PreparedDevice("", "", cdi_devices=("v.com/c=a",)),)):
        found.put(key("a"), entry(gpu=answer), {})
        assert found.unclear(GPU) == {key("a")} and not found.unclear(NIC)
    found.put(key("a"), entry(gpu=None), {GPU: ()})
    assert not found.unclear(GPU)


def test_the_users_of_a_cdi_device_are_known() -> None:
    found = DeviceIndex()
    found.put(key("a"), entry(gpu=(device("d", "v.com/c=a"), device("e", "v.com/c=a"))), {})
    assert found.users_of("v.com/c=a") == {key("a")} and not found.users_of("v.com/c=b")
    assert found.cdi(key("a")) == {"v.com/c=a": {identity("d"), identity("e")}}
