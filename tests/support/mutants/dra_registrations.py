"""DRA drivers that register incorrectly, or only once. See `faulty_dra_driver`."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from devlet.errors import InUse, Unavailable
from devlet.kit.parts import running
from devlet.objects.kinds import RESOURCE_SLICES
from devlet.sdk.dra_services import DraService
from devlet.sdk.registrar import DRA_PLUGIN, Registrar
from devlet.sdk.server import Context, Methods, SocketServer, Unary
from devlet.sdk.values import Claim, Prepared
from devlet.wire.pluginregistration import api_pb2 as pb
from tests.support.mutants.sound_dra_driver import SoundDraDriver

__all__ = ["BUGS"]

Driver = SoundDraDriver


class NeverFound(Driver):
    """Create no socket in the registry directory."""

    async def serve(self, stack: AsyncExitStack, path: Path, methods: Sequence[Methods]) -> None:
        if path != self.registry_path:
            await super().serve(stack, path, methods)


class OtherType(Driver):
    """Introduce itself as a device plugin."""

    def registrar(self) -> Registrar:
        return Registrar("DevicePlugin", self.name, str(self.service_path), self.versions)


class BadName(Driver):
    """Register under an invalid driver name."""

    def registrar(self) -> Registrar:
        return Registrar(DRA_PLUGIN, "Led_Driver", str(self.service_path), self.versions)


class RelativeEndpoint(Driver):
    """Register with a relative endpoint."""

    def registrar(self) -> Registrar:
        return Registrar(DRA_PLUGIN, self.name, self.service_path.name, self.versions)


class OldVersion(Driver):
    """Offer only a version that kubelets no longer know."""

    versions = ("1.0.0",)


class LongVersion(Driver):
    """Offer the full name of a gRPC service as a version."""

    versions = ("k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin", *Driver.versions)


class OldestFirst(Driver):
    """List the oldest service first."""

    versions = (DraService.V1BETA1, DraService.V1)


class OffersTooMuch(Driver):
    """Offer a service that it does not implement."""

    services = (DraService.V1,)


class _Counting(Driver):
    """Count the calls of GetInfo and NotifyRegistrationStatus; a base for other bugs."""

    asked = notified = 0

    async def called(self, path: str, unary: Unary, blob: bytes, context: Context) -> bytes:
        if path.endswith("/GetInfo"):
            self.asked += 1
            await self.was_asked()
        if path.endswith("/NotifyRegistrationStatus"):
            self.notified += 1
            await self.was_notified(pb.RegistrationStatus.FromString(blob).plugin_registered)
        return await super().called(path, unary, blob, context)

    async def was_asked(self) -> None: ...
    async def was_notified(self, registered: bool) -> None: ...


class FoundTooSoon(_Counting):
    """Serve claims only after a registration has failed."""

    async def serve(self, stack: AsyncExitStack, path: Path, methods: Sequence[Methods]) -> None:
        if path != self.registry_path:
            await super().serve(stack, self.registry_path, [self.registration()])
            while not self.notified:  # noqa: ASYNC110  it has no better idea
                await anyio.sleep(0.02)
            await super().serve(stack, path, methods)


class ChangesItsMind(_Counting):
    """Return different versions in every second GetInfo."""

    async def called(self, path: str, unary: Unary, blob: bytes, context: Context) -> bytes:
        answer = await super().called(path, unary, blob, context)
        if path.endswith("/GetInfo") and self.asked % 2 == 0:
            info = pb.PluginInfo.FromString(answer)
            del info.supported_versions[1:]
            return info.SerializeToString()
        return answer


class Sulks(_Counting):
    """Fail GetInfo after a refused registration."""

    refused = False

    async def was_notified(self, registered: bool) -> None:
        self.refused = self.refused or not registered

    async def was_asked(self) -> None:
        if self.refused:
            raise Unavailable("nobody wants me")


class Complains(_Counting):
    """Return an error from the first NotifyRegistrationStatus."""

    async def was_notified(self, registered: bool) -> None:
        if self.notified == 1:
            raise Unavailable("not ready yet")


class IntroducedOnce(_Counting):
    """Fail GetInfo after it was registered once."""

    async def was_asked(self) -> None:
        if self.notified:
            raise InUse("there is a kubelet already")


class IntroducedThrice(_Counting):
    """Never answer GetInfo after it was registered three times."""

    async def was_asked(self) -> None:
        if self.notified > 2:
            await anyio.sleep_forever()


class OncePerKubelet(_Counting):
    """Refuse to prepare a claim again for the next kubelet."""

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        if self.notified > 1 and claim.uid in await self.log.entries():
            raise InUse(f"claim {claim.ref.name} is prepared already")
        return await super().prepare(claim)


class PublishesAnew(_Counting):
    """Publish a new generation for each kubelet."""

    async def was_notified(self, registered: bool) -> None:
        for each in (await self.cluster.list(RESOURCE_SLICES)).items if self.notified > 1 else ():
            each["spec"]["pool"]["generation"] += 1
            await self.cluster.update(RESOURCE_SLICES, each)


class Impatient(_Counting):
    """Remove its socket if no kubelet calls it soon, from the second start on."""

    async def serve(self, stack: AsyncExitStack, path: Path, methods: Sequence[Methods]) -> None:
        lived = self.data / "lived"
        if path != self.registry_path or not lived.exists():
            lived.touch() if path == self.registry_path else None
            await super().serve(stack, path, methods)
        else:
            await stack.enter_async_context(running(self._for_a_moment))

    async def _for_a_moment(self, *, task_status: TaskStatus[None]) -> None:
        async with SocketServer(self.registry_path, [self.registration()], self.limits).serving():
            task_status.started()
            await anyio.sleep(0.4)
            if self.asked:
                await anyio.sleep_forever()


BUGS: dict[str, type[Driver]] = {
    "DRA-REG-1": NeverFound,
    "DRA-REG-2": OtherType,
    "DRA-REG-3": BadName,
    "DRA-REG-4": RelativeEndpoint,
    "DRA-REG-5": OldVersion,
    "DRA-REG-6": LongVersion,
    "DRA-REG-7": OldestFirst,
    "DRA-REG-8": OffersTooMuch,
    "DRA-REG-9": FoundTooSoon,
    "DRA-REG-10": ChangesItsMind,
    "DRA-REG-11": Sulks,
    "DRA-REG-12": Complains,
    "DRA-AGAIN-1": IntroducedOnce,
    "DRA-AGAIN-2": OncePerKubelet,
    "DRA-AGAIN-3": PublishesAnew,
    "DRA-AGAIN-4": IntroducedThrice,
    "DRA-AGAIN-5": Impatient,
}
