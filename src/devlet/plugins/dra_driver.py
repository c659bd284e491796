"""One instance of a DRA driver: the calls to it, and the health that it reports.

Protobuf and the API versions stop here: callers see claims, devices and errors from `devlet.errors`. Nothing is
retried, with one exception: if a driver does not implement a service that it advertised, its next one is called, and
used from then on if that succeeds. A driver is registered whether it is connected or not; see `kept_connection`.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import anyio

from devlet.errors import PluginError, PluginRefused, PluginUnimplemented
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.objects.identifiers import ClaimUID, DriverName
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins import dra_messages, dra_services, kept_connection
from devlet.plugins.channels import Observe
from devlet.plugins.dra import ClaimProblem, ClaimRef, DeviceReport, DriverRecord, HealthService, Service
from devlet.plugins.dra_messages import Prepared, Unprepared
from devlet.plugins.kept_connection import KeptConnection

__all__ = ["DraDriver", "Offer", "Settings"]

log = logging.getLogger(__name__)

_ADVICE = "; if the driver is for Kubernetes 1.30 or earlier, set its API in `legacyDrivers` of the configuration"
_IN_THREAD = 128 * 1024  # bytes of a message that would block the event loop noticeably while it is decoded

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds."""

    call: float = 45.0
    connection: kept_connection.Settings = field(default_factory=kept_connection.Settings)


@dataclass(frozen=True, slots=True)
class Offer:
    """What a driver registers. `services` are the ones to call, in the order in which they are tried."""

    driver: DriverName
    endpoint: Path
    advertised: tuple[str, ...]
    services: tuple[Service, ...]
    health: HealthService | None = None


@dataclass(frozen=True, slots=True)
class _Verb(Generic[T]):
    """A method in all API versions. T is the result for each claim."""

    path: Callable[[Service], str]
    encode: Callable[[Service, Sequence[ClaimRef]], bytes]
    decode: Callable[[Service, bytes, Sequence[ClaimRef]], dict[ClaimUID, T]]
    failed: Callable[[str], T]


_PREPARE: _Verb[tuple[PreparedDevice, ...] | ClaimProblem] = _Verb(
    dra_services.prepare_path, dra_messages.prepare_request, dra_messages.prepared, ClaimProblem
)
_UNPREPARE: _Verb[ClaimProblem | None] = _Verb(
    dra_services.unprepare_path, dra_messages.unprepare_request, dra_messages.unprepared, ClaimProblem
)


class DraDriver:
    """`service` is the one in use. The driver is dialled while `run` runs; after that, every call raises
    `PluginUnavailable`. `on_change` is called when it is connected or disconnected."""

    def __init__(
        self,
        offer: Offer,
        clock: Clock,
        settings: Settings = Settings(),
        *,
        on_change: Callable[[], None] = lambda: None,
        observe: Observe | None = None,
    ) -> None:
        self.offer = offer
        self.name = offer.driver
        self.endpoint = offer.endpoint
        self.service = offer.services[0]
        self.health_service = offer.health
        self.registered = self.since = clock.now()
        self._clock = clock
        self._settings = settings
        self._on_change = on_change
        self._connection = KeptConnection(
            offer.driver, offer.endpoint, settings.connection, on_change=self._changed, observe=observe
        )

    @property
    def is_connected(self) -> bool:
        return self._connection.connected

    async def run(self) -> None:
        await self._connection.keep()

    async def prepare(self, claims: Sequence[ClaimRef]) -> Prepared:
        """Return the devices of each claim, or why it failed. Raise `PluginError` if the whole call failed."""
        return await self._ask(_PREPARE, claims)

    async def unprepare(self, claims: Sequence[ClaimRef]) -> Unprepared:
        """Return None for each claim, or why it failed. Raise `PluginError` if the whole call failed."""
        return await self._ask(_UNPREPARE, claims)

    async def health(self) -> AsyncGenerator[tuple[DeviceReport, ...], None]:
        """Yield the complete list each time the driver sends one. The end of the stream raises `PluginUnavailable` or
        `PluginRefused`. `PluginUnimplemented` means that the driver does not report health and is not called again."""
        if self.health_service is None:
            raise PluginUnimplemented(self.name, "it advertises no health service")
        path = dra_services.health_path(self.health_service)
        async with aclosing(self._connection.stream(path, b"")) as messages:
            async for blob in messages:
                listed, dropped = await self._decoded(path, blob, partial(dra_messages.reports, blob))
                if dropped:
                    log.debug("health of unnamed devices ignored", extra=facts(driver=self.name, count=dropped))
                yield listed

    def record(self, *, preferred: bool) -> DriverRecord:
        return DriverRecord(
            driver=self.name,
            endpoint=self.endpoint,
            service=self.service,
            advertised=self.offer.advertised,
            health=self.health_service,
            registered=self.registered,
            connected=self.is_connected,
            since=self.since,
            preferred=preferred,
            message="" if self.is_connected else self._connection.problem(),
        )

    async def _ask(self, verb: _Verb[T], claims: Sequence[ClaimRef]) -> dict[ClaimUID, T]:
        if dra_services.takes_one_claim(self.service):
            return await self._ask_one_by_one(verb, claims)
        services = (self.service, *(other for other in self.offer.services if other is not self.service))
        for service in services:
            try:
                answer = await self._call(verb, service, claims)
            except PluginUnimplemented as e:
                problem = e
            else:
                self._remember(service)
                return answer
        unknown = ", ".join(map(dra_services.on_the_wire, services))
        raise PluginUnimplemented(self.name, f"unknown service {unknown}: {problem.message}{self._advice}") from problem

    @property
    def _advice(self) -> str:
        """Return advice about a driver that neither advertises its API nor is configured."""
        is_tried = len(self.offer.services) > 1 and dra_services.names_no_service(self.offer.advertised)
        return _ADVICE if is_tried else ""

    async def _ask_one_by_one(self, verb: _Verb[T], claims: Sequence[ClaimRef]) -> dict[ClaimUID, T]:
        answers: dict[ClaimUID, T] = {}

        async def ask(claim: ClaimRef) -> None:
            try:
                answers.update(await self._call(verb, self.service, [claim]))
            except PluginError as e:
                answers[claim.uid] = verb.failed(e.message)

        async with anyio.create_task_group() as tasks:
            for claim in claims:
                tasks.start_soon(ask, claim)
        return {claim.uid: answers[claim.uid] for claim in claims}

    async def _call(self, verb: _Verb[T], service: Service, claims: Sequence[ClaimRef]) -> dict[ClaimUID, T]:
        path = verb.path(service)
        blob = await self._connection.call(path, verb.encode(service, claims), timeout=self._settings.call)
        return await self._decoded(path, blob, partial(verb.decode, service, blob, claims))

    async def _decoded(self, path: str, blob: bytes, decode: Callable[[], T]) -> T:
        try:
            return decode() if len(blob) < _IN_THREAD else await anyio.to_thread.run_sync(decode)
        except ValueError as e:
            raise PluginRefused(self.name, f"its answer to {path.rpartition('/')[2]} {e}{self._advice}") from e

    def _remember(self, service: Service) -> None:
        if service is not self.service:
            log.info(
                "DRA driver does not implement its preferred service", extra=facts(driver=self.name, service=service)
            )
            self.service = service

    def _changed(self) -> None:
        self.since = self._clock.now()
        text = "DRA driver connected" if self.is_connected else "DRA driver disconnected"
        log.info(text, extra=facts(driver=self.name, socket=self.endpoint))
        self._on_change()
