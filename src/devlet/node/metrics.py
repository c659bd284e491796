"""The node's metrics, with the names, labels and buckets of a kubelet.

A part of the node gets the object or function that it reports to as an argument; metrics are not looked up by name."""

from collections.abc import Callable, Iterable

from devlet.kit.metrics import Registry
from devlet.node.topology.manager import NUMA_NODE
from devlet.objects.names import extended_resource_name
from devlet.plugins.registration import WatchedPlugin

__all__ = ["ACTUAL", "DESIRED", "INVALID", "DeviceMetrics", "TopologyCounters", "show_name", "show_plugins"]

ACTUAL = "actual_state_of_world"
DESIRED = "desired_state_of_world"

INVALID = "(invalid)"  # any process may register with any string, and a label value is never removed
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_MILLISECONDS = tuple(0.05 * 2**i for i in range(15))


class DeviceMetrics:
    """The metrics of the device manager and its registration server."""

    def __init__(self, registry: Registry) -> None:
        self._registrations = registry.counter(
            "kubelet_device_plugin_registration_total",
            "Requests of device plugins to be registered, valid or not, by resource name.",
            ("resource_name",),
        )
        self._allocations = registry.histogram(
            "kubelet_device_plugin_alloc_duration_seconds",
            "How long device plugins took to answer Allocate, by resource name.",
            _SECONDS,
            ("resource_name",),
        )

    def registration_requested(self, resource: str) -> None:
        self._registrations.add(INVALID if extended_resource_name(resource) else resource)

    def allocation_took(self, resource: str, seconds: float) -> None:
        """Count an answer, successful or not."""
        self._allocations.observe(seconds, resource)


class TopologyCounters:
    """Implements `TopologyMetrics`."""

    def __init__(self, registry: Registry) -> None:
        self._requests = registry.counter(
            "kubelet_topology_manager_admission_requests_total", "Pods whose topology was to be decided on."
        )
        self._errors = registry.counter(
            "kubelet_topology_manager_admission_errors_total", "Pods that were rejected because of their topology."
        )
        self._duration = registry.histogram(
            "kubelet_topology_manager_admission_duration_ms", "How long such a decision took.", _MILLISECONDS
        )
        self._aligned = registry.counter(
            "kubelet_container_aligned_compute_resources_count",
            "Containers, or pods, all of whose devices are guaranteed to be within the boundary.",
            ("scope", "boundary"),
        )
        self._not_aligned = registry.counter(
            "kubelet_container_aligned_compute_resources_failure_count",
            "Containers, or pods, for whose devices this could not be guaranteed.",
            ("scope", "boundary"),
        )
        for scope in ("container", "pod"):
            self._aligned.add(scope, NUMA_NODE, by=0)
            self._not_aligned.add(scope, NUMA_NODE, by=0)

    def admission_requested(self) -> None:
        self._requests.add()

    def admission_failed(self) -> None:
        self._errors.add()

    def admission_took(self, seconds: float) -> None:
        self._duration.observe(seconds * 1000)

    def aligned(self, scope: str, boundary: str) -> None:
        self._aligned.add(scope, boundary)

    def not_aligned(self, scope: str, boundary: str) -> None:
        self._not_aligned.add(scope, boundary)


def show_name(registry: Registry, node: str) -> None:
    """Export the name of the node, so that metrics read from several nodes or from a socket can be told apart."""
    registry.gauge("kubelet_node_name", "The name of the node, as a label.", ("node",)).set(1, node)


def show_plugins(registry: Registry, plugins: Callable[[], Iterable[WatchedPlugin]]) -> None:
    """Export the sockets of the registry directory, which are read when metrics are collected. A socket that exists is
    desired; one whose plugin is registered is actual. Most are both."""

    def read() -> dict[tuple[str, ...], float]:
        found: dict[tuple[str, ...], float] = {}
        for plugin in plugins():
            for state in ((ACTUAL,) if plugin.actual else ()) + ((DESIRED,) if plugin.desired else ()):
                found[str(plugin.socket), state] = 1
        return found

    registry.gauge(
        "plugin_manager_total_plugins",
        "Plugins by the socket they register with, and whether they are registered or to be.",
        ("socket_path", "state"),
        read,
    )
