import pytest

from devlet.alloc.taints import untolerated
from devlet.objects.types.claim import DeviceToleration
from devlet.objects.types.slice import Device, DeviceTaint
from tests.support.allocation.desk import Desk

HOT = DeviceTaint(key="hot", value="1", effect="NoSchedule")


def test_the_first_untolerated_taint_is_named() -> None:
    cold = DeviceTaint(key="cold", effect="NoExecute")
    device = Device(taints=(HOT, cold))
    assert untolerated(device, ()) is HOT
    assert untolerated(device, (DeviceToleration(key="hot", operator="Exists"),)) is cold
    assert untolerated(device, (DeviceToleration(operator="Exists"),)) is None


@pytest.mark.spec("DA-3.7c")
@pytest.mark.parametrize("effect", ["None", "", "PreferNoSchedule"])
def test_unknown_effects_are_ignored(effect: str) -> None:
    assert untolerated(Device(taints=(DeviceTaint(key="hot", effect=effect),)), ()) is None


@pytest.mark.spec("DA-3.7d")
def test_taints_apply_to_admin_access() -> None:
    slices = [{"pool": "p1", "devices": ["d1 !NoSchedule", "d2"]}]
    assert Desk(slices=slices, claims=[["r0 a admin"]]).ask() == [["r0 p1/d2"]]
    assert Desk(slices=slices, claims=[["r0 2 a admin"]]).fits() is False


def test_taints_are_ignored_while_their_feature_is_off() -> None:
    slices = [{"pool": "p1", "devices": ["d1 !NoSchedule"]}]
    assert Desk(slices=slices, claims=[["r0 a"]], without=["DeviceTaints"]).ask() == [["r0 p1/d1"]]
