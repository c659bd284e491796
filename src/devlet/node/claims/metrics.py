"""The metrics of claims, with the names, labels and buckets of a kubelet."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from devlet.kit.metrics import Registry
from devlet.node.claims.records import ClaimRecord, PodWait
from devlet.objects.identifiers import DriverName

__all__ = ["ANY", "PREPARE", "UNPREPARE", "ClaimMetrics", "claims_in_use", "contested_devices"]

PREPARE = "PrepareResources"
UNPREPARE = "UnprepareResources"
ANY = "<any>"  # instead of a driver's name

# Fifteen bounds from 0.1 to 40 seconds, each larger than the previous one by the same factor.
_BUCKETS = (
    *(0.1, 0.153413, 0.235355, 0.361064, 0.553918, 0.849781, 1.303673, 2),
    *(3.068255, 4.707094, 7.221282, 11.078366, 16.995625, 26.073454, 40),
)


class ClaimMetrics:
    """The metrics of the claim manager and of calls to drivers."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._operations = registry.histogram(
            "dra_operations_duration_seconds",
            "How long it took to prepare or unprepare the claims of a pod, and whether that failed.",
            _BUCKETS,
            ("operation_name", "is_error"),
        )
        self._calls = registry.histogram(
            "dra_grpc_operations_duration_seconds",
            "How long DRA drivers took to answer a call, by driver, method and gRPC status.",
            _BUCKETS,
            ("driver_name", "method_name", "grpc_status_code"),
        )

    def operation_took(self, name: str, seconds: float, is_error: bool) -> None:
        """Count an attempt to prepare or unprepare the claims of a pod, even if the pod has none."""
        self._operations.observe(seconds, name, str(is_error).lower())

    def call_took(self, driver: DriverName, method: str, code: str, seconds: float) -> None:
        """Count a call that is not a stream. `method` is the full path, `code` as Go spells it: OK,
        DeadlineExceeded."""
        self._calls.observe(seconds, driver, method, code)

    def show_in_use(self, read: Callable[[], Mapping[str, int]]) -> None:
        """Show what `read` returns: the number of claims in use by driver, and of all claims as `ANY`. It is called
        when the metrics are collected."""
        self._registry.gauge(
            "dra_resource_claims_in_use",
            "Prepared claims by driver, and all of them as <any>; a claim may have several drivers.",
            ("driver_name",),
            lambda: {(driver,): number for driver, number in read().items()},
        )

    def show_contested(self, read: Callable[[], int]) -> None:
        """Show what `read` returns; it is called when the metrics are collected."""
        self._registry.gauge(
            "devlet_node_contested_devices",
            "Devices that are prepared for a claim while another claim with the same device waits.",
            read=lambda: {(): read()},
        )


def contested_devices(waits: Iterable[PodWait]) -> int:
    """Return how many devices are prepared for one claim and allocated to another."""
    return len({each.device for wait in waits for each in wait.contested})


def claims_in_use(claims: Iterable[ClaimRecord]) -> dict[str, int]:
    """Count the claims that pods use and all drivers have prepared, even before a restart. Drivers without claims are
    left out; `ANY` is always included."""
    counts: Counter[str] = Counter()
    for claim in claims:
        if claim.pods and all(part.devices is not None for part in claim.drivers):
            counts.update({ANY, *(part.driver for part in claim.drivers)})
    return {ANY: 0, **counts}
