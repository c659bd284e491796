import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import StateCorrupt
from devlet.state import health_file
from devlet.state.health_file import DeviceHealth, decode, encode

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "dra_manager_state.json").read_text("utf-8"))
(WRITTEN,) = [v["file_content"] for v in VECTORS if v["format"] == "dra_health_state"]

TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
DEVICES = st.builds(
    DeviceHealth,
    pool=TEXTS.map(lambda text: text.replace("/", "")),
    device=TEXTS,
    health=st.sampled_from(["Healthy", "Unhealthy", "Unknown"]),
    updated=TIMES,
    timeout=st.integers(0, 10**6).map(float) | st.sampled_from([0.25, 30.5, -1.0]),
    message=TEXTS,
)


@pytest.mark.spec("DN-4.11")
def test_a_file_of_the_kubelet_is_decoded() -> None:
    updated = datetime(2026, 11, 15, 19, 32, 28, 252819, UTC)
    assert decode(WRITTEN.encode()) == {"drv.example.com": (DeviceHealth("p", "d", "Healthy", updated, 600.0, "m"),)}


@pytest.mark.spec("DN-4.11")
def test_the_bytes_equal_those_of_the_kubelet_to_the_microsecond() -> None:
    assert encode(decode(WRITTEN.encode())).decode() == WRITTEN.replace("819031Z", "819Z")


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 2, 3, 4, 0, tzinfo=UTC), "2026-01-02T03:04:00Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 120_000, UTC), "2026-01-02T03:04:05.12Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z"),
    ],
)
def test_times_are_encoded_without_trailing_zeros(moment: datetime, text: str) -> None:
    written = encode({"d": [DeviceHealth("p", "d", "Healthy", moment)]})
    assert f'"LastUpdated":"{text}"' in written.decode()


@given(st.dictionaries(TEXTS, st.lists(DEVICES, max_size=3, unique_by=lambda d: (d.pool, d.device)), max_size=3))
def test_encoded_data_is_decoded_unchanged(health: dict[str, list[DeviceHealth]]) -> None:
    found = decode(encode(health))
    assert found.keys() == health.keys()
    assert all(set(found[driver]) == set(devices) for driver, devices in health.items())


@pytest.mark.spec("DN-4.12")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("null", {}),
        ("{}", {}),
        ('{"d":null}', {"d": ()}),
        ('{"d":{"Devices":null}}', {"d": ()}),
        ('{"d":{"devices":{}}}\n', {"d": ()}),
    ],
)
def test_null_is_empty(text: str, found: object) -> None:
    assert decode(text.encode()) == found


def test_missing_or_undefined_health_is_unknown() -> None:
    never = datetime(1, 1, 1, tzinfo=UTC)
    text = '{"d":{"Devices":{"p/d":{"PoolName":"p","DeviceName":"d","Health":"Splendid"},"q/d":null}}}'
    assert decode(text.encode()) == {
        "d": (DeviceHealth("p", "d", "Unknown", never), DeviceHealth("", "", "Unknown", never))
    }


def test_a_time_may_have_a_zone() -> None:
    text = '{"d":{"Devices":{"p/d":{"LastUpdated":"2026-01-02T03:04:05.5+01:00"}}}}'
    (device,) = decode(text.encode())["d"]
    assert device.updated == datetime(2026, 1, 2, 2, 4, 5, 500_000, UTC)
    assert device.updated.utcoffset() == timedelta(0)


@pytest.mark.spec("DN-4.12")
@pytest.mark.parametrize(
    ("blob", "reason"),
    [
        (b"", "it is empty"),
        (b"{", "it is not JSON"),
        (b"[]", "expected an object, found a list"),
        (b'{"d":{"Devices":[]}}', "d: expected an object, found a list"),
        (b'{"d":{"Devices":{"p/d":{"LastUpdated":"soon"}}}}', "d.LastUpdated: 'soon' is not an RFC 3339 time"),
        (
            b'{"d":{"Devices":{"p/d":{"HealthCheckTimeout":1.5}}}}',
            "d.HealthCheckTimeout: expected an integer of 64 bits",
        ),
        (
            b'{"d":{"Devices":{"p/d":{"HealthCheckTimeout":"1"}}}}',
            "d.HealthCheckTimeout: expected an integer of 64 bits",
        ),
    ],
)
def test_the_reason_names_the_place(blob: bytes, reason: str) -> None:
    with pytest.raises(StateCorrupt, match=f"the health of devices cannot be read: .*{reason}"):
        decode(blob)


def test_the_size_of_a_file_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_file, "MAX_BYTES", 3)
    with pytest.raises(StateCorrupt, match="it has 4 bytes, more than 3"):
        decode(b"null")


@given(st.binary(max_size=40))
def test_any_bytes_are_accepted_or_refused(blob: bytes) -> None:
    try:
        decode(blob)
    except StateCorrupt:
        pass
