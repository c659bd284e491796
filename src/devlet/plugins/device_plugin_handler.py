"""Hand device plugins that register through the registry directory to the device manager.

Their name is the resource that they serve. Only v1beta1 is registered this way; older plugins use the Registration
service. In both cases the resource must be an extended one: `domain/name` outside of kubernetes.io.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from devlet.errors import InvalidInput
from devlet.objects.identifiers import ResourceName
from devlet.objects.names import extended_resource_name
from devlet.plugins.device_plugin import Api, Offer

__all__ = ["TYPE", "DevicePluginHandler", "check_resource_name"]

TYPE = "DevicePlugin"  # the type that plugins report
_SHOWN = 300  # characters of a wrong name


class DevicePluginHandler:
    """A `devlet.plugins.registration.Handler`."""

    def __init__(self, register: Callable[[Offer], Awaitable[None]], deregister: Callable[[Offer], None]) -> None:
        self._register = register
        self._deregister = deregister

    def validate(self, name: str, endpoint: Path, versions: Sequence[str]) -> None:
        if Api.V1BETA1 not in versions:
            listed = " ".join(versions)
            raise InvalidInput(f"manager version, {Api.V1BETA1}, is not among plugin supported versions [{listed}]")
        try:
            check_resource_name(name)
        except InvalidInput as e:
            raise InvalidInput(f"invalid name of device plugin socket: {e}") from None

    async def register(self, name: str, endpoint: Path, versions: Sequence[str]) -> None:
        await self._register(Offer(ResourceName(name), endpoint))

    async def deregister(self, name: str, endpoint: Path) -> None:
        self._deregister(Offer(ResourceName(name), endpoint))


def check_resource_name(name: str) -> None:
    """Raise `InvalidInput` if a device plugin may not register this resource."""
    if extended_resource_name(name):
        raise InvalidInput(f"the ResourceName {json.dumps(name[:_SHOWN], ensure_ascii=False)} is invalid")
