from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.state.health_file import DeviceHealth, decode, encode
from devlet.state.health_salvage import Salvage, salvage

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
HEALTH = {
    driver: tuple(DeviceHealth("pool", f"{driver[:3]}-{i}", "Healthy", NOON, 30.0, 'a "b" {€}') for i in range(3))
    for driver in ("gpu.example.com", "nic.example.com")
}
WHOLE = encode(HEALTH)


def test_an_intact_file_is_recovered_completely() -> None:
    assert salvage(WHOLE) == Salvage(decode(WHOLE)) == Salvage(HEALTH)


def _end(device: DeviceHealth) -> int:
    written = encode({"x": [device]}).partition(f'"pool/{device.device}":'.encode())[2].removesuffix(b"}}}")
    return WHOLE.index(written) + len(written)


@given(st.integers(0, len(WHOLE) - 1))
def test_complete_devices_of_a_truncated_file_are_recovered(length: int) -> None:
    kept = [device for devices in salvage(WHOLE[:length]).drivers.values() for device in devices]
    assert kept == [device for devices in HEALTH.values() for device in devices if _end(device) <= length]


def test_a_truncated_device_is_listed_as_lost() -> None:
    found = salvage(WHOLE[: WHOLE.index(b'"nic-1"') + 20])
    assert found.drivers == {
        "gpu.example.com": HEALTH["gpu.example.com"],
        "nic.example.com": HEALTH["nic.example.com"][:1],
    }
    assert found.lost == ("device pool/nic-1 of nic.example.com: the file ends before it does",)
    barely = salvage(WHOLE[: WHOLE.index(b"pool", WHOLE.index(b'"nic-0"'))])
    assert barely.drivers == found.drivers


def test_an_invalid_device_does_not_affect_the_others() -> None:
    first, *rest = HEALTH["gpu.example.com"]
    found = salvage(WHOLE.replace(b'"2026-01-02T12:00:00Z"', b'"soon"', 1))
    assert found.drivers == {"gpu.example.com": tuple(rest), "nic.example.com": HEALTH["nic.example.com"]}
    (lost,) = found.lost
    assert lost.startswith(
        f"device pool/{first.device} of gpu.example.com: LastUpdated: 'soon' is not an RFC 3339 time"
    )


def test_devices_before_the_first_driver_are_lost() -> None:
    found = salvage(WHOLE.replace(b'{"gpu.example.com":{"Devices":{', b"\0\0"))
    assert found.drivers == {"nic.example.com": HEALTH["nic.example.com"]}
    assert found.lost == tuple(f"device pool/gpu-{i}: its driver cannot be read" for i in range(3))


@pytest.mark.parametrize(("name", "found"), [('a\\"b', 'a"b'), ("\\u20ac", "€"), ("a\\xb", "a\\xb")])
def test_names_of_drivers_are_unquoted(name: str, found: str) -> None:
    device = '{"PoolName":"p","DeviceName":"d","Health":"Healthy"}'
    assert list(salvage(f'{{"{name}":{{"Devices":{{"p/d":{device}'.encode()).drivers) == [found]


def test_the_last_of_two_copies_of_a_device_counts() -> None:
    broken = WHOLE.replace(b'"gpu-1"', b'"gpu-0"')[:-1]
    assert [each.device for each in salvage(broken).drivers["gpu.example.com"]] == ["gpu-0", "gpu-2"]


@given(st.binary(max_size=60))
def test_any_bytes_are_accepted_or_refused(blob: bytes) -> None:
    assert encode(salvage(blob).drivers)
