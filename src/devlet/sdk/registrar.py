"""The driver's end of the registration: the node finds the registration socket and asks which driver serves there.

The node reports afterwards whether it accepted the driver. It does so again each time the kubelet is restarted.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final

from google.protobuf.message import DecodeError
from msgspec import Struct

from devlet.errors import DevletError, InvalidInput, Unavailable
from devlet.kit.changes import Changes
from devlet.kit.facts import facts
from devlet.sdk.server import Context, Methods
from devlet.wire.pluginregistration import api_pb2 as pb

__all__ = ["DEVICE_PLUGIN", "DRA_PLUGIN", "Registrar", "RegistrationStatus"]

log = logging.getLogger(__name__)

DRA_PLUGIN: Final = "DRAPlugin"
DEVICE_PLUGIN: Final = "DevicePlugin"

_SERVICE = "/pluginregistration.Registration/"


class RegistrationStatus(Struct, frozen=True):
    """The newest answer of the node."""

    registered: bool
    error: str = ""


class Registrar:
    """`endpoint` is the path of the service's socket; `versions` are in the order in which they are preferred.
    `accepted` is called each time the node accepts the driver."""

    def __init__(
        self,
        type: str,
        name: str,
        endpoint: str,
        versions: Sequence[str],
        accepted: Callable[[], None] = lambda: None,
    ) -> None:
        self._info = pb.PluginInfo(type=type, name=name, endpoint=endpoint, supported_versions=versions)
        self.status: RegistrationStatus | None = None
        self._notifications = Changes()
        self._accepted = accepted

    @property
    def methods(self) -> Methods:
        return Methods({f"{_SERVICE}GetInfo": self._get_info, f"{_SERVICE}NotifyRegistrationStatus": self._notify})

    @property
    def notifications(self) -> int:
        """How often the node reported a status."""
        return self._notifications.version

    async def registered(self, times: int = 1) -> None:
        """Wait until the node accepts the driver. Raise Unavailable if it refuses."""
        await self._notifications.until(lambda: self.notifications >= times)
        if self.status is not None and not self.status.registered:
            raise Unavailable(f"{self._info.name} was not registered: {self.status.error}")

    async def _get_info(self, blob: bytes, context: Context) -> bytes:
        return self._info.SerializeToString()

    async def _notify(self, blob: bytes, context: Context) -> bytes:
        try:
            message = pb.RegistrationStatus.FromString(blob)
        except DecodeError as e:
            raise InvalidInput(f"the status cannot be decoded: {e}") from e
        self.status = RegistrationStatus(message.plugin_registered, message.error)
        self._notifications.notify()
        logged = facts(driver=self._info.name, err=message.error or None)
        if not message.plugin_registered:
            log.error("not registered", extra=logged)
            raise DevletError(f"failed registration process: {message.error}")  # the words of the Go helper
        log.info("registered", extra=logged)
        self._accepted()
        return pb.RegistrationStatusResponse().SerializeToString()
