"""Extended resources that DRA provides: a pod requests `example.com/gpu: 2`, and gets a claim for a device class. Pure.

On a node that offers the resource itself, by a device plugin, the pod uses that, whatever the classes say. So the claim
depends on the node, and is created when the node is known. Until then it has a name that no stored claim can have.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec

from devlet.objects import names
from devlet.objects.claims.from_template import DELETE_PROTECTION, EXTENDED_ANNOTATION
from devlet.objects.documents import Document
from devlet.objects.identifiers import ClaimName, ContainerName, DeviceClassName, ResourceName
from devlet.objects.types.claim import DeviceClaim, DeviceRequest, ExactDeviceRequest, ResourceClaim, ResourceClaimSpec
from devlet.objects.types.container import Container
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.meta import ObjectMeta, OwnerReference
from devlet.objects.types.pod import ExtendedResourceMapping, Pod
from devlet.objects.values.quantity import Quantity
from devlet.objects.values.timestamps import parse_time

__all__ = [
    "CLASS_PREFIX",
    "UNSTORED_NAME",
    "Classes",
    "ExtendedClaim",
    "classes_by_resource",
    "existing",
    "extended_claim",
    "provided",
    "wanted",
]

CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
UNSTORED_NAME: Final = "<extended-resources>"

Classes = Mapping[ResourceName, DeviceClassName]

_OLDEST: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ExtendedClaim:
    """A claim that is not stored yet, with the requests for each container and resource."""

    claim: ResourceClaim
    mappings: tuple[ExtendedResourceMapping, ...]

    def document(self, pod: Pod) -> Document:
        """Return the claim to be stored. It has the finalizer from the start, which saves a write before the
        allocation."""
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
        requests = self.claim.spec.devices.requests
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "generateName": self.claim.metadata.generate_name,
                "namespace": pod.metadata.namespace,
                "annotations": {EXTENDED_ANNOTATION: "true"},
                "finalizers": [DELETE_PROTECTION],
                "ownerReferences": [owner],
            },
            "spec": {"devices": {"requests": [_document(each) for each in requests]}},
        }

    def pod_status(self, pod: Pod, name: ClaimName) -> Document:
        """Return a patch of the pod's status. `name` is the name of the stored claim."""
        status = {"resourceClaimName": name, "requestMappings": [msgspec.to_builtins(each) for each in self.mappings]}
        return {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": status}}


@dataclass(frozen=True, slots=True)
class _Request:
    name: str
    count: int


def classes_by_resource(classes: Iterable[DeviceClass]) -> dict[ResourceName, DeviceClassName]:
    """Map resources to classes. Of several classes for a resource, the newest counts; of equally old ones, the first by
    name."""
    found: dict[ResourceName, DeviceClassName] = {}
    # Later classes overwrite earlier ones. Sorting is stable, so the order is by age, then by name backwards.
    for each in sorted(sorted(classes, key=lambda each: each.name, reverse=True), key=_created):
        found[ResourceName(f"{CLASS_PREFIX}{each.name}")] = each.name
        if each.spec.extended_resource_name:
            found[ResourceName(each.spec.extended_resource_name)] = each.name
    return found


def wanted(amounts: Mapping[ResourceName, int], classes: Classes) -> frozenset[ResourceName]:
    """Return the requested resources that DRA may provide."""
    return frozenset(name for name in amounts if name in classes and _is_extended(name))


def provided(wanted: frozenset[ResourceName], allocatable: Mapping[ResourceName, int]) -> frozenset[ResourceName]:
    """Return the resources that DRA provides on a node: those that the node does not offer itself."""
    return frozenset(name for name in wanted if allocatable.get(name, 0) <= 0) if wanted else wanted


def extended_claim(pod: Pod, provided: Collection[ResourceName], classes: Classes) -> ExtendedClaim | None:
    """Return the claim for a node where DRA provides these resources; None if there is nothing to claim."""
    requests: list[DeviceRequest] = []
    mappings: list[ExtendedResourceMapping] = []
    for resource in sorted(provided):
        made, mapped = _of_resource(pod, resource)
        requests += (_device_request(each, classes[resource]) for each in made)
        mappings += mapped
    if not requests:
        return None
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=tuple(sorted(requests, key=lambda each: each.name))))
    claim = ResourceClaim(metadata=_metadata(pod), spec=spec)
    return ExtendedClaim(claim, tuple(mappings))


def existing(pod: Pod, claims: Iterable[ResourceClaim]) -> ResourceClaim | None:
    """Return the claim that was stored for the pod. If the pod has no node, an interrupted attempt left it over."""
    return next((claim for claim in claims if _is_for(claim, pod)), None)


def _metadata(pod: Pod) -> ObjectMeta:
    """Return metadata with a UID that no stored object has, and that is the same in each attempt."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    return ObjectMeta(
        name=UNSTORED_NAME,
        generate_name=f"{pod.name}-extended-resources-",
        namespace=pod.metadata.namespace,
        uid=f"{UNSTORED_NAME}{pod.uid}",
        annotations={EXTENDED_ANNOTATION: "true"},
        owner_references=(owner,),
    )


def _of_resource(pod: Pod, resource: ResourceName) -> tuple[list[_Request], list[ExtendedResourceMapping]]:
    """Return the requests for a resource, and their mappings to containers.

    Each container and sidecar has a request. Init containers reuse the devices of containers that start later. What is
    missing for them is one more request, with the largest number that an init container needs."""
    lasting: dict[int, _Request] = {}
    mappings: list[ExtendedResourceMapping] = []
    for index, container in _containers(pod, lasting=True):
        if count := _count(container, resource):
            lasting[index] = _Request(_name(index, container, resource), count)
            mappings.append(_mapping(container.name, resource, lasting[index].name))
    transient = {index: _transient(index, each, resource, lasting) for index, each in _containers(pod, lasting=False)}
    largest = max((own for _, own in transient.values() if own), key=lambda own: own.count, default=None)
    for index, (reused, own) in transient.items():
        names = [request.name for request in reused] + ([largest.name] if own and largest else [])
        mappings += (_mapping(pod.containers[index].name, resource, name) for name in names)
    return [*([largest] if largest else []), *lasting.values()], mappings


def _transient(
    index: int, container: Container, resource: ResourceName, lasting: Mapping[int, _Request]
) -> tuple[Sequence[_Request], _Request | None]:
    """Return the requests of later containers that an init container reuses, and the request for what it lacks."""
    missing = _count(container, resource)
    reused: list[_Request] = []
    for start, request in lasting.items():
        if missing <= 0:
            break
        if start > index:
            reused.append(request)
            missing -= request.count
    return reused, _Request(_name(index, container, resource), missing) if missing > 0 else None


def _containers(pod: Pod, *, lasting: bool) -> Iterator[tuple[int, Container]]:
    inits = len(pod.spec.init_containers)
    for index, container in enumerate(pod.containers):
        if (index >= inits or container.is_sidecar) == lasting:
            yield index, container


def _count(container: Container, resource: ResourceName) -> int:
    """Return the requested number. Extended resources are integers; any other amount counts as zero."""
    text = container.resources.requests.get(resource)
    return max(Quantity.parse(text).exact_int() or 0, 0) if text is not None else 0


def _name(index: int, container: Container, resource: ResourceName) -> str:
    return f"container-{index}-request-{sorted(container.resources.requests).index(resource)}"


def _mapping(container: ContainerName, resource: ResourceName, request: str) -> ExtendedResourceMapping:
    return ExtendedResourceMapping(container_name=container, resource_name=resource, request_name=request)


def _device_request(request: _Request, class_name: DeviceClassName) -> DeviceRequest:
    exactly = ExactDeviceRequest(device_class_name=class_name, allocation_mode="ExactCount", count=request.count)
    return DeviceRequest(name=request.name, exactly=exactly)


def _document(request: DeviceRequest) -> Document:
    exactly = request.exactly or ExactDeviceRequest()
    mode = {"allocationMode": exactly.allocation_mode, "count": exactly.count}
    return {"name": request.name, "exactly": {"deviceClassName": exactly.device_class_name, **mode}}


def _is_for(claim: ResourceClaim, pod: Pod) -> bool:
    owner = claim.metadata.controller
    is_its = owner is not None and owner.uid == pod.uid and claim.metadata.namespace == pod.metadata.namespace
    return is_its and claim.metadata.annotations.get(EXTENDED_ANNOTATION) == "true"


def _is_extended(name: ResourceName) -> bool:
    return name.startswith(CLASS_PREFIX) or not names.extended_resource_name(name)


def _created(each: DeviceClass) -> datetime:
    stamp = each.metadata.creation_timestamp
    return parse_time(stamp) if stamp else _OLDEST
