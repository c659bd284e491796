"""Device plugins that register incorrectly, or only once. See `faulty_device_plugin`."""

from typing import Any

import anyio
import grpc

from devlet.plugins.devices import Options
from devlet.plugins.registration_server import SOCKET
from devlet.wire.pluginregistration import api_pb2 as pb_registration
from tests.support.mutants.sound_device_plugin import SoundDevicePlugin

__all__ = ["BUGS"]

Plugin = SoundDevicePlugin


class NeverRegisters(Plugin):
    """Never register."""

    async def register(self, **said: Any) -> None:
        await anyio.sleep_forever()


class OldVersion(Plugin):
    """Register with an old API version."""

    async def register(self, **said: Any) -> None:
        await super().register(**{**said, "version": "v1alpha2"})


class WholePath(Plugin):
    """Register with an absolute path as endpoint."""

    async def register(self, **said: Any) -> None:
        await super().register(**{**said, "endpoint": str(self.path)})


class BareName(Plugin):
    """Register a resource name without a domain."""

    async def register(self, **said: Any) -> None:
        await super().register(**{**said, "resource": "led"})


class ServesLate(Plugin):
    """Serve only after Register has succeeded, which it never does."""

    async def start(self) -> None:
        if self.registrations:
            await super().start()

    async def register(self, **said: Any) -> None:
        try:
            await super().register(**said)
        finally:
            self.registrations += 1
            await self.restart()


class OtherOptions(Plugin):
    """Register with other options than it returns."""

    async def register(self, **said: Any) -> None:
        right, self.options = self.options, Options()
        try:
            await super().register(**said)
        finally:
            self.options = right


class RegistersOften(Plugin):
    """Register three times."""

    async def register(self, **said: Any) -> None:
        for _ in range(3):
            await super().register(**said)


class SharesSocket(Plugin):
    """Register two resources with the same socket."""

    async def register(self, **said: Any) -> None:
        await super().register(**said)
        await super().register(**{**said, "resource": "example.com/lamp"})


class Impatient(Plugin):
    """Give up a slow registration and never retry."""

    async def register(self, **said: Any) -> None:
        try:
            await super().register(**{**said, "timeout": 0.3} if self.registrations else said)
        except grpc.aio.AioRpcError:
            await anyio.sleep_forever()


class GivesUp(Plugin):
    """Never retry a refused registration."""

    async def register(self, **said: Any) -> None:
        try:
            await super().register(**said)
        except grpc.aio.AioRpcError:
            await anyio.sleep_forever()


class OtherType(Plugin):
    """Introduce itself as a CSI plugin."""

    def info(self) -> pb_registration.PluginInfo:
        self.type = "CSIPlugin"
        return super().info()


class OtherVersions(Plugin):
    """Offer only an unknown API version."""

    def info(self) -> pb_registration.PluginInfo:
        self.versions = ["v1alpha"]
        return super().info()


class RelativeEndpoint(Plugin):
    """Return a relative endpoint from GetInfo."""

    def info(self) -> pb_registration.PluginInfo:
        self.endpoint = self.path.name
        return super().info()


class GreetsOnce(Plugin):
    """Remove its socket after it was registered."""

    def notified(self, registered: bool, error: str) -> None:
        super().notified(registered, error)
        self.path.unlink(missing_ok=True)


class OtherEachTime(Plugin):
    """Return different versions in every second GetInfo."""

    def info(self) -> pb_registration.PluginInfo:
        self.versions = ["v1beta1", f"v{len(self.versions)}"] if len(self.versions) == 1 else ["v1beta1"]
        return super().info()


class GivesUpWhenRefused(Plugin):
    """Remove its socket after a refused registration."""

    def notified(self, registered: bool, error: str) -> None:
        super().notified(registered, error)
        if not registered:
            self.path.unlink(missing_ok=True)


class RegistersOnce(Plugin):
    """Never register again after a kubelet restart."""

    async def register(self, **said: Any) -> None:
        if self.registrations:
            await anyio.sleep_forever()
        await super().register(**said)


class ForgetsDevices(Plugin):
    """Leave out allocated devices after a kubelet restart."""

    async def register(self, **said: Any) -> None:
        if self.registrations:
            self.set_devices(self.devices[:-1])
        await super().register(**said)

    async def following(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        task_status.started()


class NoPatience(Plugin):
    """Give up if kubelet.sock is gone for a moment."""

    async def following(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        task_status.started()
        missing = 0
        while missing < 10:
            missing = 0 if (self.directory / SOCKET).exists() else missing + 1
            await anyio.sleep(0.03)
        self._has_given_up = True

    _has_given_up = False

    async def register(self, **said: Any) -> None:
        if self._has_given_up:
            await anyio.sleep_forever()
        await super().register(**said)


class RegistersTwice(Plugin):
    """Register no more than twice."""

    async def register(self, **said: Any) -> None:
        if self.registrations > 1:
            await anyio.sleep_forever()
        await super().register(**said)


class NeedsKubelet(Plugin):
    """Look for kubelet.sock only when it starts."""

    async def start(self) -> None:
        if self._late is None:
            self._late = not (self.directory / SOCKET).exists()
        await super().start()

    _late: bool | None = None

    async def register(self, **said: Any) -> None:
        if self._late:
            await anyio.sleep_forever()
        await super().register(**said)


BUGS: dict[str, type[SoundDevicePlugin]] = {
    "DP-REG-1": NeverRegisters,
    "DP-REG-2": OldVersion,
    "DP-REG-3": WholePath,
    "DP-REG-4": BareName,
    "DP-REG-5": ServesLate,
    "DP-REG-6": OtherOptions,
    "DP-REG-7": RegistersOften,
    "DP-REG-8": SharesSocket,
    "DP-REG-9": Impatient,
    "DP-REG-10": GivesUp,
    "DP-WATCH-1": OtherType,
    "DP-WATCH-2": OtherVersions,
    "DP-WATCH-3": RelativeEndpoint,
    "DP-WATCH-4": GreetsOnce,
    "DP-WATCH-5": OtherEachTime,
    "DP-WATCH-6": GivesUpWhenRefused,
    "DP-AGAIN-1": RegistersOnce,
    "DP-AGAIN-2": ForgetsDevices,
    "DP-AGAIN-3": NoPatience,
    "DP-AGAIN-4": RegistersTwice,
    "DP-AGAIN-5": NeedsKubelet,
}
