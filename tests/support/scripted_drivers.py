"""A cluster's claims and DRA drivers in memory, for those who test what is decided and not how it is said.

Whoever wants a driver on a real socket takes `fake_dra_driver`."""

from collections.abc import Sequence

import anyio

from devlet.errors import NotFound, PluginError, PluginUnavailable
from devlet.kit import request_ids
from devlet.kit.facts import bound_fact
from devlet.node.claims.records import ClaimKey
from devlet.objects.identifiers import ClaimUID, DriverName
from devlet.objects.types.claim import PreparedDevice, ResourceClaim
from devlet.plugins.dra import ClaimProblem, ClaimRef, Service
from tests.support.claim_specimens import device, key

__all__ = ["Claims", "ScriptedDriver", "ScriptedDrivers"]


class Claims:
    """A cluster's claims; `reads` are the names that were asked for."""

    def __init__(self, *claims: ResourceClaim) -> None:
        self.objects = {key(each.name): each for each in claims}
        self.reads: list[ClaimKey] = []

    def put(self, each: ResourceClaim) -> None:
        self.objects[key(each.name)] = each

    async def read(self, wanted: ClaimKey) -> ResourceClaim:
        self.reads.append(wanted)
        await anyio.lowlevel.checkpoint()
        if wanted not in self.objects:
            raise NotFound(f"ResourceClaim {wanted}: it does not exist", name=wanted.name)
        return self.objects[wanted]


class ScriptedDriver:
    """Answers with what `claims` say was allocated (without them, with `dev-<claim>`), unless `answers` or `problems`
    say otherwise, by claim name. What it has prepared is in `prepared`, by claim UID."""

    def __init__(self, name: DriverName, service: Service = Service.V1, *, claims: Claims | None = None) -> None:
        self.name = name
        self.service = service
        self._claims = claims
        self.calls: list[tuple[str, tuple[str, ...]]] = []
        self.requests: list[object] = []  # the request id of each call
        self.references: list[ClaimRef] = []
        self.answers: dict[str, tuple[PreparedDevice, ...]] = {}
        self.problems: dict[str, str] = {}
        self.error: PluginError | None = None
        self.gate = anyio.Event()
        self.gate.set()
        self.called = anyio.Event()
        self.prepared: set[str] = set()

    def block(self) -> None:
        self.gate, self.called = anyio.Event(), anyio.Event()

    async def prepare(self, claims: Sequence[ClaimRef]) -> dict[ClaimUID, tuple[PreparedDevice, ...] | ClaimProblem]:
        await self._hear("prepare", claims)
        found: dict[ClaimUID, tuple[PreparedDevice, ...] | ClaimProblem] = {}
        for each in claims:
            if problem := self.problems.get(each.name):
                found[each.uid] = ClaimProblem(problem)
            else:
                self.prepared.add(each.uid)
                found[each.uid] = self.answers[each.name] if each.name in self.answers else self._allocated(each)
        return found

    def _allocated(self, claim: ClaimRef) -> tuple[PreparedDevice, ...]:
        """Each device with a CDI device of its own, which has the claim's UID in its name."""
        found = self._claims.objects.get(key(claim.name)) if self._claims else None
        names = [result.device for result in found.results if result.driver == self.name] if found else []
        return tuple(
            device(name, f"{self.name}/c={claim.uid}{f'-{i}' if i else ''}")
            for i, name in enumerate(names or [f"dev-{claim.name}"])
        )

    async def unprepare(self, claims: Sequence[ClaimRef]) -> dict[ClaimUID, ClaimProblem | None]:
        await self._hear("unprepare", claims)
        found: dict[ClaimUID, ClaimProblem | None] = {}
        for each in claims:
            problem = self.problems.get(each.name)
            found[each.uid] = ClaimProblem(problem) if problem else None
            if problem is None:
                self.prepared.discard(each.uid)
        return found

    async def _hear(self, verb: str, claims: Sequence[ClaimRef]) -> None:
        self.calls.append((verb, tuple(each.name for each in claims)))
        self.requests.append(bound_fact(request_ids.FACT))
        self.references += claims
        self.called.set()
        await self.gate.wait()
        await anyio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error


class ScriptedDrivers:
    def __init__(self, *drivers: ScriptedDriver) -> None:
        self.registered = {each.name: each for each in drivers}
        self.disconnected: set[DriverName] = set()
        self.version = 1
        self._changed = anyio.Event()

    def pick(self, name: DriverName) -> ScriptedDriver:
        if name not in self.registered:
            raise PluginUnavailable(name, f"DRA driver {name} is not registered")
        return self.registered[name]

    def is_usable(self, name: DriverName) -> bool:
        return name in self.registered and name not in self.disconnected

    def add(self, driver: ScriptedDriver) -> None:
        self.registered[driver.name] = driver
        self.version += 1
        self._changed.set()
        self._changed = anyio.Event()

    async def changed(self, since: int) -> int:
        while self.version <= since:
            await self._changed.wait()
        return self.version
