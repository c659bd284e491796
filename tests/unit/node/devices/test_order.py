"""The order of devices."""

from hypothesis import given
from hypothesis import strategies as st

from devlet.node.devices.order import in_order, natural
from devlet.objects.identifiers import DeviceID
from devlet.plugins.devices import Device

ids = st.text("ab-01290", max_size=30) | st.text(max_size=10)


def test_numbers_in_ids_are_compared_numerically() -> None:
    assert in_order(["gpu-10", "gpu-2", "gpu-1", "fpga-3"], key=str) == ["fpga-3", "gpu-1", "gpu-2", "gpu-10"]


def test_every_number_in_an_id_is_compared() -> None:
    assert in_order(["0000:0a:10.1", "0000:0a:9.12", "0000:0a:9.3"], key=str) == [
        "0000:0a:9.3",
        "0000:0a:9.12",
        "0000:0a:10.1",
    ]


def test_things_are_sorted_by_their_ids() -> None:
    devices = [Device(DeviceID("b10")), Device(DeviceID("b9"))]
    assert [device.id for device in in_order(devices, key=lambda device: device.id)] == ["b9", "b10"]


def test_numbers_of_any_length_can_be_sorted() -> None:
    assert in_order(["9" * 5000, "1"], key=str)[0] == "1"


@given(ids, ids)
def test_different_ids_have_different_keys(a: str, b: str) -> None:
    assert (natural(a) == natural(b)) == (a == b)


@given(st.text("ab-", max_size=5), st.integers(0, 10**15), st.integers(0, 10**15))
def test_ids_that_differ_in_a_number_are_sorted_by_it(prefix: str, a: int, b: int) -> None:
    assert (natural(f"{prefix}{a}") < natural(f"{prefix}{b}")) == (a < b)
