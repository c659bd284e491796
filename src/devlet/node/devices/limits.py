"""The number of devices that a pod and its containers request.

Limits count, not requests. Limits that a resource claim satisfies, because the scheduler made one for an extended
resource, do not concern device plugins.
"""

from collections import Counter

from devlet.objects.identifiers import ResourceName
from devlet.objects.pods.requests import Claimed, claimed
from devlet.objects.types.container import Container
from devlet.objects.types.pod import Pod
from devlet.objects.values.quantity import Quantity

__all__ = ["claimed", "is_plain_init", "of_container", "of_pod"]


def of_container(container: Container, claimed: Claimed = ()) -> dict[ResourceName, int]:
    """Return the positive limits of resources that may be devices, rounded up. The name of such a resource has a
    domain, unlike `cpu`."""
    found = {}
    for name, quantity in container.resources.limits.items():
        resource = ResourceName(name)
        if "/" in name and (container.name, resource) not in claimed:
            if (number := Quantity.parse(quantity).as_int()) > 0:
                found[resource] = number
    return found


def of_pod(pod: Pod) -> dict[ResourceName, int]:
    """Return the most devices that the pod has at one time: init containers run one after the other, sidecars stay."""
    without = claimed(pod)
    peak: Counter[ResourceName] = Counter()
    sidecars: Counter[ResourceName] = Counter()
    for container in pod.spec.init_containers:
        wanted = Counter(of_container(container, without))
        peak |= sidecars + wanted
        if container.is_sidecar:
            sidecars += wanted
    together = sidecars.copy()
    for container in pod.spec.containers:
        together += Counter(of_container(container, without))
    return dict(peak | together)


def is_plain_init(pod: Pod, container: Container) -> bool:
    """Return True if the container ends before the next one starts."""
    return not container.is_sidecar and any(each.name == container.name for each in pod.spec.init_containers)
