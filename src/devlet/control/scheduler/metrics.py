"""The scheduler's metrics, with the names, labels and buckets of kube-scheduler where they mean the same."""

from collections.abc import Callable, Mapping

from devlet.kit.metrics import Registry

__all__ = ["SchedulerMetrics"]

PROFILE = "devlet"

_ATTEMPTS = tuple(0.001 * 2**i for i in range(15))
_WAITS = tuple(0.001 * 2**i for i in range(20))


class SchedulerMetrics:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._attempts = registry.counter(
            "scheduler_schedule_attempts_total",
            "Attempts to schedule a pod, by result: scheduled, unschedulable or error.",
            ("profile", "result"),
        )
        self._took = registry.histogram(
            "scheduler_scheduling_algorithm_duration_seconds", "How long it took to find a place for a pod.", _ATTEMPTS
        )
        self._bindings = registry.counter(
            "scheduler_dra_bindingconditions_allocations_total",
            "Allocations whose devices had to be attached first, by how that ended.",
            ("profile", "driver", "status"),
        )
        self._waits = registry.histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "How long pods waited for devices to be attached.",
            _WAITS,
            ("profile", "driver", "status"),
        )
        self._claims = registry.counter(
            "scheduler_resourceclaim_creates_total", "Claims made for extended resources.", ("status",)
        )

        self._overlaps = registry.counter(
            "devlet_scheduler_allocation_overlaps_total",
            "Attempts to schedule a pod that ended because a device of its claims was also allocated to another claim.",
        )

    def attempted(self, result: str, seconds: float | None = None) -> None:
        self._attempts.add(PROFILE, result)
        if seconds is not None:
            self._took.observe(seconds)

    def waited(self, driver: str, status: str, seconds: float) -> None:
        """`status` is success, failure, timeout or error."""
        self._bindings.add(PROFILE, driver, status)
        self._waits.observe(seconds, PROFILE, driver, status)

    def made_claim(self, status: str) -> None:
        self._claims.add(status)

    def overlapped(self) -> None:
        self._overlaps.add()

    def show_overlaps(self, read: Callable[[], int]) -> None:
        """Show the number of overlaps that exist now."""
        self._registry.gauge(
            "devlet_scheduler_allocation_overlaps",
            "Devices, or counters of pools, of which several claims together have more than there is.",
            read=lambda: {(): read()},
        )

    def show_pending(self, read: Callable[[], Mapping[str, int]]) -> None:
        """Show the number of pending pods by queue: active, unschedulable."""
        self._registry.gauge(
            "scheduler_pending_pods",
            "Pods that wait for a node, by whether it is their turn.",
            ("queue",),
            lambda: {(queue,): number for queue, number in read().items()},
        )
