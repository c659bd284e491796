"""Which pods use which devices, through the claims that are reserved for them.

Claims for extended resources are handled like all others; Kubernetes leaves them out here. A pod that has no node, has
finished or is being deleted uses no device that it would have to leave.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from devlet.cluster.informer import Changed
from devlet.control.informers import BY_CLAIM, Informers
from devlet.control.taints.device_taints import NO_EXECUTE, DeviceTaints, Taint, TaintsOf
from devlet.control.taints.evictions import Eviction, eviction
from devlet.control.taints.rule_status import Counts
from devlet.objects.identifiers import DeviceIdentity, ObjectKey
from devlet.objects.pods.claims import claim_names, is_reserved_for
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod
from devlet.objects.types.taint_rule import DeviceTaintRule, DeviceTaintSelector

__all__ = ["Holders", "Usage"]


class Usage:
    def __init__(self, informers: Informers, *, workloads: bool) -> None:
        self._informers = informers
        self._workloads = workloads
        self._holders = Holders()
        informers.claims.on_change(self._holders.put)

    def users(self, selector: DeviceTaintSelector) -> list[Pod]:
        """Return the pods that name a claim with a device which the selector matches."""
        return [pod for claim in self._holders.of(selector) for pod in self.users_of(claim)]

    def users_of(self, claim: ObjectKey) -> list[Pod]:
        namespace, name = claim
        return self._informers.pods.by_index(BY_CLAIM, f"{namespace}/{name}")

    def eviction(self, pod: Pod, taints_of: TaintsOf) -> Eviction | None:
        if not pod.spec.node_name or pod.metadata.is_deleting or pod.is_finished:
            return None
        found = self._claims((pod.metadata.namespace, name) for name in claim_names(pod))
        return eviction((claim for claim in found if self._may_use(pod, claim)), taints_of)

    def _may_use(self, pod: Pod, claim: ResourceClaim) -> bool:
        return is_reserved_for(claim, pod, workloads=self._workloads)

    def _claims(self, keys: Iterable[ObjectKey]) -> Iterator[ResourceClaim]:
        return (claim for namespace, name in keys if (claim := self._informers.claims.get(name, namespace)))

    def dry_run(self, rule: DeviceTaintRule, taints: DeviceTaints) -> Counts:
        """Count what the rule would do if its effect was NoExecute."""
        selector = rule.spec.device_selector
        if selector is None:
            return Counts()
        users = {pod.uid: pod for pod in self.users(selector)}.values()
        claims = self._claims(self._holders.of(selector))
        return Counts(
            namespaces=[pod.metadata.namespace for pod in users if self.eviction(pod, _only(rule))],
            published=sum(map(rule.matches, self._published(taints))),
            allocated=sum(rule.matches(result.identity) for claim in claims for result in claim.results),
        )

    def _published(self, taints: DeviceTaints) -> Iterator[DeviceIdentity]:
        for slice_ in self._informers.slices.all():
            if taints.is_published(slice_):
                yield from map(slice_.identity, slice_.spec.devices)


class Holders:
    """The claims that hold each device, found by a selector without a scan of all claims."""

    def __init__(self) -> None:
        self._claims: dict[DeviceIdentity, set[ObjectKey]] = {}

    def put(self, change: Changed[ResourceClaim]) -> None:
        before, after = _devices(change.old), _devices(change.new)
        for device in before - after:
            self._claims[device].remove(change.key)
            if not self._claims[device]:
                del self._claims[device]
        for device in after - before:
            self._claims.setdefault(device, set()).add(change.key)

    def of(self, selector: DeviceTaintSelector) -> list[ObjectKey]:
        """The claims that hold a device which the selector matches, each once, in order."""
        return sorted({key for device in self._matching(selector) for key in self._claims[device]})

    def _matching(self, selector: DeviceTaintSelector) -> Iterable[DeviceIdentity]:
        if selector.driver is None or selector.pool is None or selector.device is None:
            return (device for device in self._claims if selector.matches(device))
        device = DeviceIdentity(selector.driver, selector.pool, selector.device)
        return (device,) if device in self._claims else ()


def _devices(claim: ResourceClaim | None) -> set[DeviceIdentity]:
    return {result.identity for result in claim.results} if claim is not None else set()


def _only(rule: DeviceTaintRule) -> TaintsOf:
    taint = Taint(replace(rule.spec.taint, effect=NO_EXECUTE), rule.metadata.name)
    return lambda device: (taint,) if rule.matches(device) else ()
