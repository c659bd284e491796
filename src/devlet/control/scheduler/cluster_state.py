"""What the scheduler knows of the cluster: nodes, devices, claims, classes and taints, its own decisions included."""

from collections.abc import Callable, Mapping, Sequence

from devlet.control.informers import BY_OWNER, Informers
from devlet.control.scheduler import claim_checks, extended_resources
from devlet.control.scheduler.claim_book import ClaimBook
from devlet.control.scheduler.devices import Devices
from devlet.control.scheduler.extended_resources import Classes
from devlet.control.scheduler.nodes import NodeTable
from devlet.control.scheduler.settings import Settings
from devlet.control.scheduler.subject import Subject, read_subject
from devlet.control.slice_tracker import SliceListener, SliceTracker
from devlet.control.taints.device_taints import DeviceTaints, TaintsOf
from devlet.kit.clock import Clock
from devlet.objects.identifiers import DeviceClassName, ObjectKey
from devlet.objects.node_drivers import gone_drivers
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod
from devlet.objects.types.slice import ResourceSlice
from devlet.objects.types.taint_rule import DeviceTaintSelector

__all__ = ["ClusterState"]


class ClusterState:
    """Answers the questions of `decision.View`.

    The callbacks are called at once when devices were freed, a claim is no longer in flight, a slice was changed or
    removed, and the taints of devices changed. They must not wait or raise."""

    def __init__(
        self,
        informers: Informers,
        clock: Clock,
        settings: Settings,
        *,
        devices_freed: Callable[[], None],
        claim_landed: Callable[[ObjectKey], None],
        slice_changed: SliceListener,
        slice_removed: Callable[[ResourceSlice], None],
        taints_changed: Callable[[DeviceTaintSelector], None],
    ) -> None:
        self.informers = informers
        self.devices = Devices()
        self.claims = ClaimBook(informers.claims, self.devices, devices_freed, claim_landed)
        self.nodes = NodeTable(self.devices.allocator, self._namespace_labels)
        self.slices = SliceTracker(informers, slice_changed, slice_removed)
        self.taints = DeviceTaints(informers, taints_changed)
        self._clock = clock
        self._settings = settings
        self._classes: Classes | None = None  # computed when needed

    def read(self, pod: Pod) -> Subject | str:
        """Read a pod with its claims. Return why the claims are not ready, if so."""
        return read_subject(pod, self.claims.get, self._extended_classes())

    def classes_changed(self) -> None:
        self._classes = None

    def needs_scheduling(self, pod: Pod) -> bool:
        """Return True if the pod is ours to place, or to allocate claims for."""
        spec = pod.spec
        if pod.metadata.is_deleting or pod.is_finished:
            return False
        is_ours = spec.scheduler_name in self._settings.names
        if spec.node_name:
            return (is_ours or self._settings.all_placed) and self._lacks_devices(pod)
        return is_ours and not spec.scheduling_gates

    def _lacks_devices(self, pod: Pod) -> bool:
        """Return True if a pod was placed without its claims having devices that can be prepared."""
        if not pod.spec.resource_claims:
            return False
        claims = claim_checks.resolve(pod, self.claims.get)
        if isinstance(claims, str) or any(claim.status.allocation is None for claim in claims):
            return True
        return bool(self.lost_claims(pod))

    # The view of a decision

    def is_in_flight(self, claim: ObjectKey) -> bool:
        return self.claims.is_in_flight(claim)

    def has_class(self, name: DeviceClassName) -> bool:
        return name in self.devices.allocator.inventory.classes

    def has_failed(self, claim: ResourceClaim) -> bool:
        if not claim_checks.has_conditions(claim):
            return False
        expired = claim_checks.is_expired(claim, self._settings.binding_timeout, self._clock.now())
        return expired or claim_checks.binding(claim).state == "failed"

    def lost_claims(self, pod: Pod) -> Sequence[ResourceClaim]:
        """Return the claims that keep a pod from starting on its node because their drivers and slices are gone.

        A claim that other pods share is not among them, because it cannot be deallocated for one of them."""
        node = self.informers.nodes.get(pod.spec.node_name) if pod.spec.node_name else None
        if not gone_drivers(node) or pod.has_started:  # nearly always: this is called for every change of a pod
            return ()
        claims = claim_checks.resolve(pod, self.claims.get)
        return [
            claim
            for claim in (claims if not isinstance(claims, str) else ())
            if claim_checks.is_lost(claim, node, self.slices.has_pool)
            and all(each.uid == pod.uid for each in claim.status.reserved_for)
        ]

    def overlap(self, claim: ResourceClaim) -> str:
        overlaps = self.devices.ledger.of((claim.metadata.namespace, claim.metadata.name))
        return overlaps[0].text if overlaps else ""

    @property
    def taints_of(self) -> TaintsOf:
        return self.taints.of

    def left_over_claim(self, pod: Pod) -> ResourceClaim | None:
        return extended_resources.existing(pod, self.informers.claims.by_index(BY_OWNER, pod.uid))

    def _extended_classes(self) -> Classes:
        if self._classes is None:
            self._classes = extended_resources.classes_by_resource(self.informers.classes.all())
        return self._classes

    def _namespace_labels(self, name: str) -> Mapping[str, str]:
        found = self.informers.namespaces.get(name)
        return found.metadata.labels if found else {}
