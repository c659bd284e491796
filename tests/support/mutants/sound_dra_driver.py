"""A DRA driver without devices that keeps the whole contract, as a process of its own.

    python -m tests.support.mutants.sound_dra_driver --root R --cdi C --kubeconfig K --node N --instance I

It has ten LEDs, or as many as the file `R/devices` says once that exists, and one that several claims may share, of
which they have no more light than there is. It is made of the parts of `devlet.sdk`, put together such that each of
them can be replaced: `faulty_dra_driver` is this one with a bug in it.
"""

import argparse
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
import msgspec
from anyio.abc import TaskStatus
from msgspec import Struct

from devlet.cluster.client import Cluster
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.errors import InUse, InvalidInput
from devlet.kit import facts
from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.objects.types.claim import DeviceResult
from devlet.objects.values.quantity import Quantity
from devlet.sdk.cdi_files import CdiFiles
from devlet.sdk.claim_log import ClaimLog
from devlet.sdk.claim_preparer import ClaimPreparer
from devlet.sdk.claim_reader import ClaimReader
from devlet.sdk.dra_services import DraService, dra_methods
from devlet.sdk.exclusion import Exclusion
from devlet.sdk.health import HEALTH_SERVICES, HealthService
from devlet.sdk.metadata_files import MetadataFiles
from devlet.sdk.registrar import DRA_PLUGIN, Registrar
from devlet.sdk.server import Context, Limits, Methods, SocketServer, Stream, Unary
from devlet.sdk.slices import controller
from devlet.sdk.slices.controller import SlicePublisher
from devlet.sdk.values import Capacity, Claim, ClaimRef, Device, DeviceHealth, DeviceNode, Mount, Pool, Prepared
from devlet.wire.dra_v1 import api_pb2 as pb_v1
from devlet.wire.dra_v1beta1 import api_pb2 as pb_v1beta1

__all__ = ["DRIVER", "PREPARE", "UNPREPARE", "SoundDraDriver", "arguments", "run"]

DRIVER = "led.example.com"
PREPARE, UNPREPARE = "NodePrepareResources", "NodeUnprepareResources"
_LIGHT = 10  # of the one that is shared
_LOOK = 0.05  # seconds between two looks at the file
_QUICK = controller.Settings(sync_delay=0.3, own_writes=0.5)
_MESSAGES: Mapping[str, Any] = {"v1": pb_v1, "v1beta1": pb_v1beta1}


class Parameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The opaque parameters that the driver accepts."""

    color: Literal["red", "green"] = "red"


class SoundDraDriver:
    """What a bug may want to change is a method of its own."""

    name = DRIVER
    services: Sequence[DraService] = (DraService.V1, DraService.V1BETA1)
    versions: Sequence[str] = (DraService.V1, DraService.V1BETA1, *HEALTH_SERVICES)
    limits = Limits(grace=0.5)

    def __init__(self, root: Path, cdi: Path, api: Path, node: str, instance: str = "") -> None:
        self.root = root
        self.cdi = cdi
        self.api = api
        self.node = node
        self.instance = instance
        self.data = root / "plugins" / self.name
        suffix = f"-{instance}" if instance else ""
        self.registry_path = root / "plugins_registry" / f"{self.name}{suffix}-reg.sock"
        self.service_path = self.data / f"dra{suffix}.sock"
        self.log = ClaimLog(self.data / "claims.json", dict[str, int])
        self.health_service = HealthService()
        self.cdi_files = CdiFiles(cdi, self.name)
        self.metadata_files = MetadataFiles(self.name, self.data, cdi)

    # What there is

    def count(self) -> int:
        """It may be half written."""
        path = self.root / "devices"
        text = path.read_text().strip() if path.exists() else ""
        return int(text) if text else 10

    def pools(self) -> Mapping[str, Pool]:
        leds = [Device(f"led-{number}", {"color": "red"}) for number in range(self.count())]
        light = Capacity(str(_LIGHT), {"default": str(_LIGHT), "validRange": {"min": "1", "step": "1"}})
        return {self.node: Pool([*leds, Device("shared-0", {}, {"light": light}, allow_multiple_allocations=True)])}

    def reports(self) -> Sequence[DeviceHealth]:
        return [
            DeviceHealth(name, device.name, timeout=3) for name, pool in self.pools().items() for device in pool.devices
        ]

    # Claims

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        colors = [self.parameters(claim, result).color for result in claim.results]
        await self.check_free(claim)
        async with self.log.preparing(claim.ref, _held(claim)):
            return [self.given(number, *pair) for number, pair in enumerate(zip(claim.results, colors, strict=True))]

    def given(self, number: int, result: DeviceResult, color: str) -> Prepared:
        return Prepared(
            result,
            env={f"{result.device.upper().replace('-', '_')}_{number}": color},
            devices=[DeviceNode("/dev/null", f"/dev/{result.device}")],
            mounts=[Mount("/etc/passwd", f"/etc/leds/{result.device}")],
        )

    def parameters(self, claim: Claim, result: DeviceResult) -> Parameters:
        try:
            found = [msgspec.convert(each, Parameters) for each in claim.configs_for(result)]
        except msgspec.ValidationError as e:
            raise InvalidInput(f"parameters of request {result.request}: {e}") from e
        return found[-1] if found else Parameters()

    async def check_free(self, claim: Claim) -> None:
        wanted = _held(claim)
        light = sum(wanted.values())
        for uid, entry in (await self.log.entries()).items():
            if uid == claim.uid:
                continue
            if both := wanted.keys() & entry.detail.keys():
                raise InUse(f"claim {entry.claim.name} has {', '.join(sorted(both))}")
            light += sum(entry.detail.values())
        if light > _LIGHT:
            raise InUse(f"the claims would have {light} of {_LIGHT} light")

    async def unprepare(self, claim: ClaimRef) -> None:
        async with self.log.unpreparing(claim.uid):
            pass

    # Parts

    def reader(self, cluster: Cluster) -> ClaimReader:
        return ClaimReader(cluster, self.name)

    def turns(self) -> AbstractAsyncContextManager[object] | None:
        return Exclusion(self.data / "serialize.lock")

    def registrar(self) -> Registrar:
        return Registrar(DRA_PLUGIN, self.name, str(self.service_path), self.versions)

    def publisher(self, cluster: Cluster) -> SlicePublisher:
        return SlicePublisher(cluster, self.name, self.node, lambda error, doing: None, SystemClock(), _QUICK)

    async def publishing(self, *, task_status: TaskStatus[None]) -> None:
        publisher = self.publisher(self.cluster)
        async with running(publisher.run):
            task_status.started()
            async for pools in self.changes():
                publisher.publish(pools)
                self.health_service.show(self.reports())

    async def changes(self) -> AsyncIterator[Mapping[str, Pool]]:
        seen = -1
        while True:
            if (count := self.count()) != seen:
                seen = count
                yield self.pools()
            await anyio.sleep(_LOOK)

    # On the wire

    def dra(self, cluster: Cluster) -> list[Methods]:
        preparer = ClaimPreparer(self, self.reader(cluster), self.cdi_files, self.turns(), self.metadata_files)
        own = [dra_methods(service, preparer.prepare, preparer.unprepare) for service in self.services]
        return [_wrapped(each, self.called, self.watched) for each in [*own, self.health_service.methods]]

    def registration(self) -> Methods:
        return _wrapped(self.registrar().methods, self.called, self.watched)

    async def called(self, path: str, unary: Unary, blob: bytes, context: Context) -> bytes:
        """Each call. What is answered for claims passes `answered`."""
        answer = await unary(blob, context)
        package, method = path.rpartition(".")[0].rpartition(".")[2], path.rpartition("/")[2]
        if method not in (PREPARE, UNPREPARE):
            return answer
        pb = _MESSAGES[package]
        request = getattr(pb, f"{method}Request").FromString(blob)
        response = getattr(pb, f"{method}Response").FromString(answer)
        await self.answered(method, package, request, response)
        return bytes(response.SerializeToString())

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        """May be changed where it is."""

    def watched(self, path: str, stream: Stream, blob: bytes, context: Context) -> AsyncIterator[bytes]:
        return stream(blob, context)

    # Life

    async def live(self, stack: AsyncExitStack) -> None:
        """All that is entered here ends with it."""
        self.data.mkdir(parents=True, exist_ok=True)
        self.cluster: Cluster = await stack.enter_async_context(connected(kubeconfig.connection([self.api])))
        await stack.enter_async_context(running(self.publishing))
        await self.serve(stack, self.service_path, self.dra(self.cluster))
        await self.serve(stack, self.registry_path, [self.registration()])

    async def serve(self, stack: AsyncExitStack, path: Path, methods: Sequence[Methods]) -> None:
        await stack.enter_async_context(running(SocketServer(path, methods, self.limits).run))

    async def asked_to_stop(self) -> None:
        """SIGTERM has come."""


def _held(claim: Claim) -> dict[str, int]:
    """Devices and shares, with how much light of the one that is shared."""
    return {f"{each.pool}/{each.device}/{each.share_id or ''}": _light(each) for each in claim.results}


def _light(result: DeviceResult) -> int:
    return Quantity.parse(result.consumed_capacity.get("light", 0)).as_int()


def _wrapped(methods: Methods, called: Callable[..., Any], watched: Callable[..., Any]) -> Methods:
    return Methods(
        {path: partial(called, path, unary) for path, unary in methods.unary.items()},
        {path: partial(watched, path, stream) for path, stream in methods.streams.items()},
    )


async def run(driver: SoundDraDriver) -> None:
    """Until SIGTERM."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with AsyncExitStack() as stack:
            await driver.live(stack)
            async for _ in signals:
                break
            await driver.asked_to_stop()


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="A DRA driver without devices.")
    parser.add_argument("--root", type=Path, required=True, help="has plugins_registry/ and plugins/")
    parser.add_argument("--cdi", type=Path, required=True, help="where its CDI specs go")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--node", required=True, help="its name")
    parser.add_argument("--instance", default="", help="tells several of them apart")
    return parser


def main(words: Sequence[str] | None = None, kind: type[SoundDraDriver] = SoundDraDriver) -> None:
    given = arguments().parse_args(words)
    facts.configure("text")
    anyio.run(run, kind(given.root, given.cdi, given.kubeconfig, given.node, given.instance))


if __name__ == "__main__":
    main()
