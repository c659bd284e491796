from devlet.objects.identifiers import DeviceID
from devlet.plugins.devices import Device


def test_only_the_exact_string_means_healthy() -> None:
    healths = ["Healthy", "healthy", "Unhealthy", ""]
    assert [Device(DeviceID("d"), health).is_healthy for health in healths] == [True, False, False, False]
