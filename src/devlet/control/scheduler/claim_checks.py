"""Whether a pod's claims allow it to be scheduled. Pure: the caller looks up claims and classes.

A check returns why not, in the words of kube-scheduler, or an empty string. The objects that the reason names may
change at any time, and the pod waits for that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

import msgspec

from devlet.errors import InvalidInput, NotFound
from devlet.objects.identifiers import DeviceClassName, DriverName, PoolName
from devlet.objects.node_drivers import gone_drivers
from devlet.objects.pods import claims as pod_claims
from devlet.objects.types.claim import AllocatedDeviceStatus, DeviceRequest, DeviceResult, ResourceClaim
from devlet.objects.types.meta import Condition
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod, PodResourceClaim
from devlet.objects.values.timestamps import after, parse_time

__all__ = [
    "IN_FLIGHT",
    "Binding",
    "binding",
    "deadline",
    "has_conditions",
    "is_expired",
    "is_lost",
    "missing_class",
    "resolve",
]

IN_FLIGHT: Final = "resource claim {}/{} is in the process of being allocated"

_FAILED: Final = "device binding failed: claim={}, reason={}, message={}"


@dataclass(frozen=True, slots=True)
class Binding:
    """Whether the devices of a claim are attached. `message` says what failed or is pending."""

    state: Literal["ready", "pending", "failed"]
    message: str = ""


_READY: Final = Binding("ready")


def resolve(pod: Pod, get_claim: Callable[[str, str], ResourceClaim | None]) -> list[ResourceClaim] | str:
    """Return the claims of the pod, each once, or why it has to wait. `get_claim` takes namespace and name."""
    found: dict[str, ResourceClaim] = {}
    for entry in pod.spec.resource_claims:
        one = _resolved(pod, entry, get_claim)
        if isinstance(one, str):
            return one
        if one is not None:
            found[one.name] = one
    return list(found.values())


def missing_class(claim: ResourceClaim, has_class: Callable[[DeviceClassName], bool]) -> str:
    """Return why the claim cannot be allocated on any node: the first request without an existing class."""
    for request in claim.spec.devices.requests:
        for name, class_name in _classes(request):
            if not class_name:
                return f"request {name}: unsupported request type"
            if not has_class(class_name):
                return f"request {name}: device class {class_name} does not exist"
        if request.exactly is None and not request.first_available:
            where = f"resource claim {claim.metadata.namespace}/{claim.name}, request {request.name}"
            return f"{where}: unknown request type"
    return ""


def is_lost(claim: ResourceClaim, node: Node | None, has_pool: Callable[[DriverName, PoolName], bool]) -> bool:
    """Return True if the claim has a device of a driver that is gone from the node, and of a pool that is gone too.

    Nothing can prepare such a claim. `has_pool` tells whether slices of a pool are published."""
    gone = gone_drivers(node)
    return any(each.driver in gone and not has_pool(each.driver, each.pool) for each in claim.results)


def has_conditions(claim: ResourceClaim) -> bool:
    """Return True if devices must be attached after the claim was allocated."""
    return any(result.binding_conditions for result in claim.results)


def binding(claim: ResourceClaim) -> Binding:
    """Return whether the claim's devices are attached. One failure counts more than any number of pending devices."""
    pending: list[str] = []
    for result in claim.results:
        if not result.binding_conditions:
            continue
        status = _status(claim, result)
        conditions = status.conditions if status else ()
        if failure := _true(conditions, result.binding_failure_conditions):
            message = _FAILED.format(claim.name, failure.reason, msgspec.json.encode(failure.message).decode())
            return Binding("failed", message)
        pending += (
            f"{result.identity}: {name}" for name in result.binding_conditions if not _true(conditions, (name,))
        )
    return Binding("pending", f"claim {claim.name} waits for {', '.join(pending)}") if pending else _READY


def deadline(claim: ResourceClaim, timeout: float) -> datetime | None:
    """Return when the conditions must be met; None if there are none, or if the allocation has no timestamp."""
    stamp = claim.status.allocation.allocation_timestamp if claim.status.allocation else None
    if stamp is None or not has_conditions(claim):
        return None
    return after(parse_time(stamp), timeout)


def is_expired(claim: ResourceClaim, timeout: float, now: datetime) -> bool:
    """Return True if conditions were not met in time. A failure does not count as that."""
    until = deadline(claim, timeout)
    return until is not None and until < now and binding(claim).state == "pending"


def _resolved(
    pod: Pod, entry: PodResourceClaim, get_claim: Callable[[str, str], ResourceClaim | None]
) -> ResourceClaim | str | None:
    namespace, subject = pod.metadata.namespace, f'pod "{pod.metadata.namespace}/{pod.name}"'
    try:
        known = pod_claims.resolve(pod, entry)
    except NotFound:
        return f"{subject}: {pod_claims.NOT_CREATED}"
    except InvalidInput:
        return f'{subject}, spec.resourceClaim "{entry.name}": none of the supported fields are set'
    if known.name is None:
        return None
    claim = get_claim(namespace, known.name)
    if claim is None:
        return f'could not find ResourceClaim "{namespace}/{known.name}"'
    if claim.metadata.is_deleting:
        return f'resourceclaim "{claim.name}" is being deleted'
    if known.must_be_owned and not pod_claims.is_made_for(claim, pod):
        made = f"ResourceClaim {namespace}/{claim.name} was not created for Pod {namespace}/{pod.name}"
        return f"{made} (Pod is not owner)"
    return claim


def _classes(request: DeviceRequest) -> list[tuple[str, DeviceClassName]]:
    if request.exactly is not None:
        return [(request.name, request.exactly.device_class_name)]
    return [(f"{request.name}/{each.name}", each.device_class_name) for each in request.first_available]


def _status(claim: ResourceClaim, result: DeviceResult) -> AllocatedDeviceStatus | None:
    """Return the status of a device. Two shares of one device have a status each."""
    for status in claim.status.devices:
        if status.identity == result.identity and (status.share_id or None) == (result.share_id or None):
            return status
    return None


def _true(conditions: tuple[Condition, ...], types: tuple[str, ...]) -> Condition | None:
    return next((each for each in conditions if each.type in types and each.status == "True"), None)
