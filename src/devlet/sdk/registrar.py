"""How a node learns of a driver: it finds the driver's registration socket and asks who is there.

It says afterwards whether it accepted the driver, each time anew when the node's agent was restarted.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final

import anyio
from google.protobuf.message import DecodeError
from msgspec import Struct

from devlet.errors import DevletError, InvalidInput, Unavailable
from devlet.kit.facts import facts
from devlet.sdk.server import Context, Methods
from devlet.wire.pluginregistration import api_pb2 as pb

__all__ = ["DEVICE_PLUGIN", "DRA_PLUGIN", "Registrar", "RegistrationStatus"]

log = logging.getLogger(__name__)

DRA_PLUGIN: Final = "DRAPlugin"
DEVICE_PLUGIN: Final = "DevicePlugin"

_SERVICE = "/pluginregistration.Registration/"


class RegistrationStatus(Struct, frozen=True):
    """What the node said last."""

    registered: bool
    error: str = ""


class Registrar:
    """`endpoint` is the path of the service's socket; `versions` are in the order in which they are preferred.
    `accepted` is called each time that the node has accepted the driver."""

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
        self.notifications = 0
        self._notified = anyio.Event()
        self._accepted = accepted

    @property
    def methods(self) -> Methods:
        return Methods({f"{_SERVICE}GetInfo": self._get_info, f"{_SERVICE}NotifyRegistrationStatus": self._notify})

    async def registered(self, times: int = 1) -> None:
        """Until the node has accepted it. Unavailable if it has refused instead."""
        while self.notifications < times:
            await self._notified.wait()
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
        self.notifications += 1
        self._notified.set()
        self._notified = anyio.Event()
        told = facts(driver=self._info.name, err=message.error or None)
        if not message.plugin_registered:
            log.error("not registered", extra=told)
            raise DevletError(f"failed registration process: {message.error}")  # the words of the Go helper
        log.info("registered", extra=told)
        self._accepted()
        return pb.RegistrationStatusResponse().SerializeToString()
