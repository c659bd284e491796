from datetime import UTC, datetime

import pytest

from devlet.kit.metrics import OTHER, Registry
from devlet.node.claims.metrics import ANY, PREPARE, UNPREPARE, ClaimMetrics, claims_in_use, contested_devices
from devlet.node.claims.records import ClaimKey, ClaimRecord, ClaimState, Contested, DriverPart, PodWait
from devlet.objects.identifiers import ClaimName, ClaimUID, DriverName, PodUID
from devlet.objects.types.claim import PreparedDevice

GPU, NIC = DriverName("gpu.example.com"), DriverName("nic.example.com")
DEVICES = (PreparedDevice("pool", "d0"),)
METHOD = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"


def values(registry: Registry) -> dict[str, str]:
    lines = (line.rpartition(" ") for line in registry.text().splitlines() if not line.startswith("#"))
    return {name: value for name, _, value in lines}


def types(registry: Registry) -> dict[str, str]:
    lines = (line.split() for line in registry.text().splitlines() if line.startswith("# TYPE"))
    return {name: type_ for _, _, name, type_ in lines}


def record(name: str, *drivers: DriverPart, pods: tuple[str, ...] = ("p",)) -> ClaimRecord:
    key = ClaimKey("default", ClaimName(name))
    return ClaimRecord(key, ClaimUID(name), ClaimState.PREPARED, drivers, tuple(map(PodUID, pods)))


@pytest.mark.spec("DN-12.1")
def test_operations_are_counted_by_name_and_outcome() -> None:
    registry = Registry()
    metrics = ClaimMetrics(registry)
    metrics.operation_took(PREPARE, 0.2, False)
    metrics.operation_took(UNPREPARE, 41, True)
    shown, name = values(registry), "dra_operations_duration_seconds"
    assert types(registry)[name] == "histogram"
    prepare = 'operation_name="PrepareResources",is_error="false"'
    assert shown[f'{name}_bucket{{{prepare},le="0.153413"}}'] == "0"
    assert shown[f'{name}_bucket{{{prepare},le="0.235355"}}'] == "1"
    unprepare = 'operation_name="UnprepareResources",is_error="true"'
    assert shown[f'{name}_bucket{{{unprepare},le="40"}}'] == "0"
    assert shown[f"{name}_count{{{unprepare}}}"] == "1"


@pytest.mark.spec("DN-12.2")
def test_calls_are_counted_by_driver_method_and_code() -> None:
    registry = Registry()
    ClaimMetrics(registry).call_took(GPU, METHOD, "DeadlineExceeded", 2.0)
    shown, name = values(registry), "dra_grpc_operations_duration_seconds"
    assert types(registry)[name] == "histogram"
    labels = f'driver_name="{GPU}",method_name="{METHOD}",grpc_status_code="DeadlineExceeded"'
    assert shown[f"{name}_sum{{{labels}}}"] == "2"
    bounds = [series.rpartition('le="')[2][:-2] for series in shown if "_bucket{" in series]
    expected = "0.1 0.153413 0.235355 0.361064 0.553918 0.849781 1.303673 2 3.068255 4.707094 7.221282 11.078366"
    assert bounds == [*expected.split(), "16.995625", "26.073454", "40", "+Inf"]


def test_the_bounds_grow_by_the_same_factor() -> None:
    registry = Registry()
    ClaimMetrics(registry).operation_took(PREPARE, 1, False)
    bounds = [float(series.rpartition('le="')[2][:-2]) for series in values(registry) if "_bucket{" in series][:-1]
    assert bounds == pytest.approx([0.1 * 400 ** (step / 14) for step in range(15)], rel=1e-5)


@pytest.mark.spec("DN-12.3")
@pytest.mark.spec("DN-9.2.19")
def test_claims_in_use_are_counted_when_metrics_are_collected() -> None:
    registry = Registry()
    claims: list[ClaimRecord] = []
    ClaimMetrics(registry).show_in_use(lambda: claims_in_use(claims))
    name = "dra_resource_claims_in_use"
    assert values(registry) == {f'{name}{{driver_name="<any>"}}': "0"}
    assert types(registry) == {name: "gauge"}
    claims += [record("both", DriverPart(GPU, DEVICES), DriverPart(NIC, DEVICES)), record("one", DriverPart(GPU, ()))]
    assert values(registry) == {
        f'{name}{{driver_name="<any>"}}': "2",
        f'{name}{{driver_name="{GPU}"}}': "2",
        f'{name}{{driver_name="{NIC}"}}': "1",
    }
    claims.clear()
    assert values(registry) == {f'{name}{{driver_name="<any>"}}': "0"}


@pytest.mark.spec("DN-11.13")
def test_a_claim_counts_while_a_pod_uses_it_and_its_drivers_have_prepared_it() -> None:
    held = record("held", DriverPart(GPU, DEVICES))  # as it is after a restart: known from the checkpoint
    partial = record("partial", DriverPart(GPU, DEVICES), DriverPart(NIC, None))
    left = record("left", DriverPart(GPU, DEVICES), pods=())
    assert claims_in_use([held, partial, left]) == {ANY: 1, GPU: 1}
    assert claims_in_use([partial, left]) == {ANY: 0}


@pytest.mark.long
def test_the_number_of_series_is_limited() -> None:
    registry = Registry()
    metrics = ClaimMetrics(registry)
    for number in range(10_050):
        metrics.call_took(DriverName(f"d{number}.example.com"), METHOD, "OK", 0.1)
    metrics.call_took(DriverName("x" * 100_000), METHOD, "OK", 0.1)
    counts = [name for name in values(registry) if "_count{" in name]
    assert len(counts) <= 10_001
    assert any(f'driver_name="{OTHER}"' in name for name in counts)
    assert max(map(len, counts)) < 2_000


def test_a_contested_device_counts_once_however_many_claims_want_it() -> None:
    registry, waits = Registry(), list[PodWait]()
    ClaimMetrics(registry).show_contested(lambda: contested_devices(waits))
    assert values(registry) == {"devlet_node_contested_devices": "0"}
    for name in ("b", "c"):
        found = (Contested("d/p/x", "ns/a", f"ns/{name}"),)
        waits.append(PodWait(PodUID(name), (ClaimKey("ns", ClaimName(name)),), datetime.now(UTC), "", (), found))
    assert values(registry) == {"devlet_node_contested_devices": "1"}
