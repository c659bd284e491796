"""A DRA driver that a test controls, on real sockets.

    async with FakeDraDriver(root, "gpu.example.com") as driver:      # to be found in root/plugins_registry
        await driver.until_registered()
        driver.set_devices("train", [PreparedDevice("pool", "gpu-3", requests=("gpu",))])
        driver.hang(PREPARE)                                          # see `dra_script` for other faults
        ...
        assert driver.asked(PREPARE)[0].names == ("train",)
        assert driver.prepared["uid-of-train"].devices[0].device == "gpu-3"
        assert driver.connections == 1

A claim is prepared with the devices that it was allocated, if a devlet with an API runs on `root` or on the directory
above it. Elsewhere the driver cannot know them, and prepares `dev-<claim>` of its pool. A single device is for all
requests of the claim.
`set_devices` and `handler` change the answers, valid or not. Preparing is idempotent and leaves a CDI file
(`fake_dra_claims`). With `health_services` it also streams the health of its devices:

    driver.health.set([DeviceReport("pool", "gpu-3", "Unhealthy", message="too hot")])

Its two sockets are started and stopped together or one by one:

    await driver.stop_service()           # registered, but not answering
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
    """A DRA driver that serves while its block runs. With `autostart=False` only `start_registrar` and `start_service`
    start it.

    These attributes may be changed at any time: `services` and `health_services`, which are served; `versions`, which
    are advertised (None: those that are served); `type`, `name` and `endpoint`, as in the answer to GetInfo; `pool`;
    and `handler`, a function that returns the answer for a claim (None: the default), and may be async.

    `one_socket` serves everything on the registration socket. `service_path` is the path of the service's socket. With
    `keep` the claims are in files below the driver's directory, where a later run and other instances find them."""

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
        self.statuses: list[tuple[bool, str]] = []  # the answers of NotifyRegistrationStatus, with their errors
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
        await self._life.aclose()  # so an error of the block is not wrapped in a group

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve as a part, until cancelled."""
        async with self:
            task_status.started()
            await anyio.sleep_forever()

    @property
    def connections(self) -> int:
        """The number of connections that the service's socket accepted so far."""
        return self.service.proxy.accepted

    async def start(self) -> None:
        """Start the service, and then the registrar: a node that is notified of the service can call it."""
        await self.start_service()
        await self.start_registrar()

    async def start_service(self) -> None:
        await self.service.start(self._running())

    async def start_registrar(self) -> None:
        await self.registrar.start(self._running())

    async def stop(self) -> None:
        """Stop as a process that ends in order: connections are closed and the sockets are removed. Idempotent."""
        await self.stop_registrar()
        await self.stop_service()

    async def stop_service(self) -> None:
        await self.service.stop()

    async def stop_registrar(self) -> None:
        await self.registrar.stop()

    async def crash(self) -> None:
        """Stop as a killed process: connections are closed, and sockets without listeners stay."""
        await self.registrar.crash()
        await self.service.crash()

    def set_devices(self, claim: str, answer: Answer) -> None:
        """Set the answer for the claim of this name or UID when it is prepared; a `ClaimProblem` fails it. Devices
        whose `cdi_devices` are None get one; other values are answered unchanged, valid or not."""
        self._given[claim] = answer

    def set_all_devices(self, answers: Mapping[str, Answer]) -> None:
        """Set the answers for several claims, and remove all previous ones."""
        self._given = dict(answers)

    async def until_registered(self, times: int = 1) -> None:
        """Wait until the node reported `times` times that the driver is registered."""
        await self._notifier.until(lambda: sum(registered for registered, _ in self.statuses) >= times)

    async def until_refused(self) -> str:
        """Wait for a NotifyRegistrationStatus that refuses the driver, and return its error."""
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
