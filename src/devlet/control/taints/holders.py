"""Which claims hold a device: found by what a taint says about devices, without looking at all claims."""

from collections.abc import Iterable

from devlet.cluster.informer import Changed, Key
from devlet.objects.identifiers import DeviceIdentity
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.taint_rule import DeviceTaintSelector

__all__ = ["Holders"]


class Holders:
    def __init__(self) -> None:
        self._claims: dict[DeviceIdentity, set[Key]] = {}

    def put(self, change: Changed[ResourceClaim]) -> None:
        before, after = _devices(change.old), _devices(change.new)
        for device in before - after:
            self._claims[device].remove(change.key)
            if not self._claims[device]:
                del self._claims[device]
        for device in after - before:
            self._claims.setdefault(device, set()).add(change.key)

    def of(self, selector: DeviceTaintSelector) -> list[Key]:
        """The claims that hold a device which the selector matches, each once, in order."""
        return sorted({key for device in self._matching(selector) for key in self._claims[device]})

    def _matching(self, selector: DeviceTaintSelector) -> Iterable[DeviceIdentity]:
        if selector.driver is None or selector.pool is None or selector.device is None:
            return (device for device in self._claims if selector.matches(device))
        device = DeviceIdentity(selector.driver, selector.pool, selector.device)
        return (device,) if device in self._claims else ()


def _devices(claim: ResourceClaim | None) -> set[DeviceIdentity]:
    return {result.identity for result in claim.results} if claim is not None else set()
