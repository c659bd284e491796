from datetime import UTC, datetime
from pathlib import Path

import pytest

from devlet.kit.metrics import Registry
from devlet.node.metrics import DeviceMetrics, TopologyCounters, show_name, show_plugins
from devlet.node.topology.manager import NUMA_NODE, TopologyMetrics
from devlet.plugins.registration import WatchedPlugin


def values(registry: Registry) -> dict[str, str]:
    lines = (line.rpartition(" ") for line in registry.text().splitlines() if not line.startswith("#"))
    return {name: value for name, _, value in lines}


def types(registry: Registry) -> dict[str, str]:
    lines = (line.split() for line in registry.text().splitlines() if line.startswith("# TYPE"))
    return {name: type_ for _, _, name, type_ in lines}


def test_registrations_and_allocations_are_counted_by_resource() -> None:
    registry = Registry()
    metrics = DeviceMetrics(registry)
    metrics.registration_requested("a.com/gpu")
    metrics.registration_requested("a.com/gpu")
    metrics.allocation_took("a.com/gpu", 0.03)
    shown = values(registry)
    assert shown['kubelet_device_plugin_registration_total{resource_name="a.com/gpu"}'] == "2"
    series = "kubelet_device_plugin_alloc_duration_seconds"
    assert shown[f'{series}_bucket{{resource_name="a.com/gpu",le="0.025"}}'] == "0"
    assert shown[f'{series}_bucket{{resource_name="a.com/gpu",le="0.05"}}'] == "1"
    assert shown[f'{series}_count{{resource_name="a.com/gpu"}}'] == "1"
    bounds = [name.rpartition('le="')[2][:-2] for name in shown if "_bucket{" in name]
    assert bounds == ["0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "+Inf"]


def test_invalid_names_share_one_series() -> None:
    registry = Registry()
    metrics = DeviceMetrics(registry)
    for number in range(100):
        metrics.registration_requested(f"nonsense {number}")
    found = {name: value for name, value in values(registry).items() if "registration_total" in name}
    assert found == {'kubelet_device_plugin_registration_total{resource_name="(invalid)"}': "100"}


def test_the_metrics_of_topology_exist_before_the_first_pod() -> None:
    registry = Registry()
    TopologyCounters(registry)
    shown = values(registry)
    assert shown["kubelet_topology_manager_admission_requests_total"] == "0"
    assert shown["kubelet_topology_manager_admission_errors_total"] == "0"
    assert shown["kubelet_topology_manager_admission_duration_ms_count"] == "0"
    for scope in ("container", "pod"):
        for name in ("count", "failure_count"):
            series = f'kubelet_container_aligned_compute_resources_{name}{{scope="{scope}",boundary="numa_node"}}'
            assert shown[series] == "0"


def test_topology_is_counted_in_milliseconds() -> None:
    registry = Registry()
    metrics: TopologyMetrics = TopologyCounters(registry)
    metrics.admission_requested()
    metrics.admission_failed()
    metrics.admission_took(0.0003)
    metrics.aligned("pod", NUMA_NODE)
    metrics.not_aligned("container", NUMA_NODE)
    shown = values(registry)
    assert shown["kubelet_topology_manager_admission_requests_total"] == "1"
    assert shown["kubelet_topology_manager_admission_errors_total"] == "1"
    duration = "kubelet_topology_manager_admission_duration_ms"
    assert (shown[f'{duration}_bucket{{le="0.2"}}'], shown[f'{duration}_bucket{{le="0.4"}}']) == ("0", "1")
    assert f'{duration}_bucket{{le="819.2"}}' in shown
    aligned = "kubelet_container_aligned_compute_resources"
    assert shown[f'{aligned}_count{{scope="pod",boundary="numa_node"}}'] == "1"
    assert shown[f'{aligned}_failure_count{{scope="container",boundary="numa_node"}}'] == "1"


def test_the_name_of_the_node_is_a_label() -> None:
    registry = Registry()
    show_name(registry, "n1")
    assert values(registry) == {'kubelet_node_name{node="n1"}': "1"}


@pytest.mark.spec("DP-8.62")
def test_plugins_have_one_series_per_state_and_socket() -> None:
    registry, since = Registry(), datetime(2025, 1, 1, tzinfo=UTC)
    plugins = [WatchedPlugin(Path("/r/a.sock"), desired=True, actual=True, since=since)]
    show_plugins(registry, lambda: plugins)
    plugins.append(WatchedPlugin(Path("/r/b.sock"), desired=True, actual=False, since=since))
    assert values(registry) == {
        'plugin_manager_total_plugins{socket_path="/r/a.sock",state="actual_state_of_world"}': "1",
        'plugin_manager_total_plugins{socket_path="/r/a.sock",state="desired_state_of_world"}': "1",
        'plugin_manager_total_plugins{socket_path="/r/b.sock",state="desired_state_of_world"}': "1",
    }
    assert types(registry) == {"plugin_manager_total_plugins": "gauge"}
