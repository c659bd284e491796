"""A DRA driver that does what a test says, on real sockets.

    async with FakeDraDriver(root, "gpu.example.com") as driver:      # to be found in root/plugins_registry
        await driver.until_registered()
        driver.set_devices("train", [PreparedDevice("pool", "gpu-3", requests=("gpu",))])
        driver.hang(PREPARE)                                          # see `dra_script` for what else can go wrong
        ...
        assert driver.asked(PREPARE)[0].names == ("train",)
        assert driver.prepared["uid-of-train"].devices[0].device == "gpu-3"
        assert driver.connections == 1

A claim is prepared with the devices that it was allocated, if a devlet with an API runs on `root` or on the directory
above it. Elsewhere the driver cannot know them, and prepares `dev-<claim>` of its pool. A single device is for all
requests of the claim.
`set_devices` and `handler` have it answer otherwise, sensible or not. Preparing is idempotent and leaves a CDI file
(`fake_dra_claims`). With `health_services` it also streams the health of its devices:

    driver.health.set([DeviceReport("pool", "gpu-3", "Unhealthy", message="too hot")])

Its two sockets are started and stopped together or one by one:

    await driver.stop_service()           # registered, but nobody answers
    await driver.start_service()
    driver.service.proxy.cut()            # see `wire_faults`

Two instances of one driver, as in a rolling update, have an `instance` in the names of their sockets. As a process of
its own, which can be killed like a real one (see --help):

    python -m devlet.testing.fake_dra_driver --root ROOT --driver gpu.example.com --services v1,v1beta1 --health
"""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup, TaskStatus
from msgspec import structs

from devlet.cluster.remote import client
from devlet.cluster.remote.connection import at_socket
from devlet.daemon.kube_api import SOCKET
from devlet.errors import InvalidInput
from devlet.objects.identifiers import DriverName
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins.dra import ClaimProblem, ClaimRef, DeviceReport, HealthService, Service
from devlet.testing import fake_dra_services as services
from devlet.testing.dra_script import (
    GARBAGE,
    GET_INFO,
    NOTIFY,
    PREPARE,
    UNPREPARE,
    WATCH,
    Answers,
    Call,
    Context,
    DraScript,
)
from devlet.testing.fake_dra_claims import FakeDraClaims
from devlet.testing.fake_dra_cluster import allocated
from devlet.testing.fake_dra_health import FakeDraHealth
from devlet.testing.fake_dra_messages import ADVERTISED, large_answer
from devlet.testing.grpc_socket import GrpcSocket
from devlet.wire.pluginregistration import api_pb2 as pb

__all__ = [
    "GARBAGE",
    "GET_INFO",
    "NOTIFY",
    "PREPARE",
    "UNPREPARE",
    "WATCH",
    "Answer",
    "Call",
    "ClaimProblem",
    "ClaimRef",
    "DeviceReport",
    "FakeDraDriver",
    "HealthService",
    "PreparedDevice",
    "Service",
    "large_answer",
]

TYPE = "DRAPlugin"

Answer = Sequence[PreparedDevice] | ClaimProblem
Handler = Callable[[ClaimRef], Answer | Awaitable[Answer | None] | None]


class FakeDraDriver(DraScript):
    """Serves while its block runs; with `autostart=False` only what `start_registrar` and `start_service` start.

    May be changed at any time: `services` and `health_services`, which are served; `versions`, which are advertised
    (None: those that are served); `type`, `name` and `endpoint`, as GetInfo says them; `pool`; `handler`, which is
    asked what to answer for a claim (None: the default), and may be async.

    `one_socket` serves everything on the registration socket. `service_path` puts the service's socket anywhere. `keep`
    has the claims in files below the driver's directory, where its next life and other instances find them."""

    def __init__(
        self,
        root: Path,
        name: str = "gpu.example.com",
        *,
        services: Sequence[Service] = (Service.V1, Service.V1BETA1),
        health_services: Sequence[HealthService] = (),
        versions: Sequence[str] | None = None,
        pool: str = "pool",
        cdi_directory: Path | None = None,
        instance: str = "",
        one_socket: bool = False,
        service_path: Path | None = None,
        keep: bool = False,
        autostart: bool = True,
    ) -> None:
        super().__init__()
        if {Service.V1ALPHA3, Service.V1ALPHA4} <= set(services):
            raise InvalidInput(f"driver {name}: v1alpha3 and v1alpha4 have the same methods: serve one of them")
        suffix = f"-{instance}" if instance else ""
        self._root = root
        self.directory = root / "plugins" / name
        self.registry_path = root / "plugins_registry" / f"{name}{suffix}-reg.sock"
        self.path = self.registry_path if one_socket else service_path or self.directory / f"dra{suffix}.sock"
        self.type = TYPE
        self.name = name
        self.endpoint = "" if one_socket else str(self.path)
        self.versions = versions
        self.services = services
        self.health_services = health_services
        self.pool = pool
        self.handler: Handler = lambda claim: None
        self.health = FakeDraHealth()
        self.prepared = FakeDraClaims(
            DriverName(name), cdi_directory or root / "cdi", self.directory / "claims" if keep else None
        )
        self.statuses: list[tuple[bool, str]] = []  # what NotifyRegistrationStatus said, with its error
        self.registrar, self.service = self._sockets()
        self._given: dict[str, Answer] = {}
        self._autostart = autostart
        self._tasks: TaskGroup | None = None
        self._life = AsyncExitStack()

    def _sockets(self) -> tuple[GrpcSocket, GrpcSocket]:
        registrar = GrpcSocket(self.registry_path)
        service = registrar if self.path == self.registry_path else GrpcSocket(self.path)
        registrar.add(services.registration_service(self, registrar.proxy.cut))
        service.add(services.dra_service(self, service.proxy.cut))
        return registrar, service

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as life:
            self._tasks = await life.enter_async_context(anyio.create_task_group())
            life.push_async_callback(self.stop)
            if self._autostart:
                await self.start()
            self._life = life.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._life.aclose()  # an error of the block stays itself, and is no group

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """The same as a part: serves until it is cancelled."""
        async with self:
            task_status.started()
            await anyio.sleep_forever()

    @property
    def connections(self) -> int:
        """How many were accepted on the service's socket, in all its lives."""
        return self.service.proxy.accepted

    async def start(self) -> None:
        """The service, and then the registrar: who is told of the service can call it."""
        await self.start_service()
        await self.start_registrar()

    async def start_service(self) -> None:
        await self.service.start(self._running())

    async def start_registrar(self) -> None:
        await self.registrar.start(self._running())

    async def stop(self) -> None:
        """End like a good process: connections are closed and the sockets are removed. May be repeated."""
        await self.stop_registrar()
        await self.stop_service()

    async def stop_service(self) -> None:
        await self.service.stop()

    async def stop_registrar(self) -> None:
        await self.registrar.stop()

    async def crash(self) -> None:
        """End like a killed process: connections are closed, sockets without listeners stay."""
        await self.registrar.crash()
        await self.service.crash()

    def set_devices(self, claim: str, answer: Answer) -> None:
        """What to answer for the claim of this name, or UID, when it is prepared; a `ClaimProblem`: that it fails.
        Devices whose `cdi_devices` are None get one; other values are answered as they are, sensible or not."""
        self._given[claim] = answer

    def set_all_devices(self, answers: Mapping[str, Answer]) -> None:
        """The same for several claims; what was set before is forgotten."""
        self._given = dict(answers)

    async def until_registered(self, times: int = 1) -> None:
        """Wait until it was told so many times that it is registered."""
        await self._notifier.until(lambda: sum(registered for registered, _ in self.statuses) >= times)

    async def until_refused(self) -> str:
        """Wait for a NotifyRegistrationStatus that says no, and give its error."""
        refusals = await self._notifier.until(lambda: [error for registered, error in self.statuses if not registered])
        return refusals[-1]

    # For the services.

    async def prepare(self, call: Call) -> Answers:
        refusals = self.refusals(call)
        answers: Answers = {}
        for claim in call.claims:
            why = refusals.get(claim.uid)
            answers[claim.uid] = await self._prepare(claim) if why is None else ClaimProblem(why)
        return self.change(call, answers)

    async def unprepare(self, call: Call) -> Answers:
        refusals = self.refusals(call)
        answers: Answers = {claim.uid: () for claim in call.claims}
        for uid in answers:
            if uid in refusals:
                answers[uid] = ClaimProblem(refusals[uid])
            else:
                self.prepared.remove(uid)
        return self.change(call, answers)

    def health_lists(self, first: bytes | None, context: Context) -> AsyncGenerator[bytes, None]:
        return self.health.lists(first, context)

    def info(self) -> pb.PluginInfo:
        return pb.PluginInfo(
            type=self.type, name=self.name, endpoint=self.endpoint, supported_versions=self._advertised()
        )

    def notified(self, registered: bool, error: str) -> None:
        self.statuses.append((registered, error))
        self._notifier.notify()

    async def _prepare(self, claim: ClaimRef) -> tuple[PreparedDevice, ...] | ClaimProblem:
        if claim.uid in self.prepared:
            return self.prepared[claim.uid].devices
        answer = await self._decide(claim)
        return answer if isinstance(answer, ClaimProblem) else self.prepared.add(claim, answer)

    async def _decide(self, claim: ClaimRef) -> Answer:
        for key in (claim.uid, claim.name):
            if key in self._given:
                return self._given[key]
        decided = self.handler(claim)
        answer = await decided if inspect.isawaitable(decided) else decided
        return await self._allocated(claim) if answer is None else answer

    async def _allocated(self, claim: ClaimRef) -> Answer:
        for folder in (self._root, self._root.parent):
            if (path := folder / SOCKET).is_socket():
                async with client.connected(at_socket(path)) as cluster:
                    answer = await allocated(cluster, self.name)(claim)
                return answer if isinstance(answer, ClaimProblem) or len(answer) > 1 else list(map(_for_all, answer))
        return [PreparedDevice(self.pool, f"dev-{claim.name}")]

    def _advertised(self) -> list[str]:
        if self.versions is not None:
            return list(self.versions)
        return list(dict.fromkeys([ADVERTISED[service] for service in self.services] + list(self.health_services)))

    def _running(self) -> TaskGroup:
        if self._tasks is None:
            raise InvalidInput(f"driver {self.name}: starts inside its block: `async with FakeDraDriver(…) as driver`")
        return self._tasks


def _for_all(device: PreparedDevice) -> PreparedDevice:
    """Return the device for all requests of the claim."""
    return structs.replace(device, requests=None)


if __name__ == "__main__":
    from devlet.testing.fake_dra_program import main

    main()
