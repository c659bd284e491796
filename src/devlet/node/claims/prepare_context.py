"""What preparing and unpreparing share: the claim info cache and its file, the drivers, and a lock for each claim."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import anyio
from msgspec import Struct

from devlet.errors import NotPrepared, PluginError
from devlet.kit.key_locks import KeyLocks
from devlet.node.claims.claim_info_cache import ClaimInfoCache
from devlet.node.claims.progress import Progress
from devlet.node.claims.records import ClaimKey
from devlet.objects.identifiers import ClaimUID, DriverName, PodUID
from devlet.objects.types.claim import PreparedDevice, ResourceClaim
from devlet.plugins.dra import ClaimProblem, ClaimRef, Service
from devlet.state.checkpoint_file import GroupSaver

__all__ = [
    "Batches",
    "Driver",
    "Drivers",
    "Misplaced",
    "PrepareContext",
    "Problem",
    "Read",
    "Settings",
    "call_drivers",
    "problem_text",
    "raise_for",
]

Read = Callable[[ClaimKey], Awaitable[ResourceClaim]]
Misplaced = Callable[[ResourceClaim], str]
"""Returns why the claim's devices cannot be used on this node, or an empty string."""
Batches = dict[DriverName, list[ClaimKey]]
"""The claims with which each driver is called."""


@dataclass(frozen=True, slots=True)
class Settings:
    extended: bool = True  # gate DRAExtendedResource
    workloads: bool = False  # gate DRAWorkloadResourceClaims
    reads_at_once: int = 16  # claims of one pod that are read from the cluster at the same time
    cleanups_at_once: int = 16  # deleted pods that are cleaned up at the same time


class Driver(Protocol):
    """One instance of a DRA driver. A PluginError means that the whole call failed, for all of its claims."""

    @property
    def service(self) -> Service: ...

    async def prepare(
        self, claims: Sequence[ClaimRef]
    ) -> Mapping[ClaimUID, tuple[PreparedDevice, ...] | ClaimProblem]: ...

    async def unprepare(self, claims: Sequence[ClaimRef]) -> Mapping[ClaimUID, ClaimProblem | None]: ...


class Drivers(Protocol):
    def pick(self, name: DriverName) -> Driver:
        """Return the instance to call. Raise PluginUnavailable if the driver is not registered."""
        ...

    def is_usable(self, name: DriverName) -> bool:
        """Return True if an instance of the driver is connected."""
        ...

    @property
    def version(self) -> int:
        """A number that grows with each change."""
        ...

    async def changed(self, since: int) -> int:
        """Wait until the version is greater than `since`, and return it."""
        ...


@dataclass(frozen=True, slots=True)
class PrepareContext:
    """`unsaved` are pods whose references were deleted, though the file may still contain them. `ending` are pods that
    have ended and whose claims are not unprepared yet."""

    cache: ClaimInfoCache
    saver: GroupSaver
    drivers: Drivers
    read: Read
    progress: Progress
    settings: Settings
    locks: KeyLocks[ClaimKey]
    misplaced: Misplaced = lambda claim: ""
    unsaved: set[PodUID] = field(default_factory=set)
    ending: set[PodUID] = field(default_factory=set)

    def unusable(self, name: DriverName) -> str:
        """Return why the driver cannot be called now, or an empty string if it can."""
        try:
            self.drivers.pick(name)
        except PluginError as e:
            return e.message
        return "" if self.drivers.is_usable(name) else f"DRA driver {name} is registered, but not connected"

    def reference(self, key: ClaimKey, driver: DriverName) -> ClaimRef:
        """Return the reference to a cached claim with which the driver is called."""
        entry = self.cache[key]
        devices = (entry.drivers or {}).get(driver) or ()
        names = tuple(name for device in devices for name in device.cdi_devices or ())
        return ClaimRef(key.namespace, key.name, ClaimUID(entry.uid), names)


class Problem(Struct, frozen=True):
    """Why a driver could not prepare or unprepare a claim."""

    driver: DriverName
    key: ClaimKey
    message: str

    def __str__(self) -> str:
        return f"claim {self.key.name}: driver {self.driver}: {self.message}"


def problem_text(key: ClaimKey, problems: Iterable[Problem]) -> str:
    """Describe the problems of one claim. Return an empty string if there are none."""
    return "; ".join(sorted(f"driver {each.driver}: {each.message}" for each in problems if each.key == key))


def raise_for(problems: Sequence[Problem]) -> None:
    """Raise NotPrepared if there are any problems."""
    if problems:
        drivers = (problem.driver for problem in problems)
        raise NotPrepared("; ".join(sorted(map(str, problems))), drivers=drivers)


async def call_drivers(
    batches: Batches, call: Callable[[DriverName, list[ClaimKey]], Awaitable[list[Problem]]]
) -> list[Problem]:
    """Call all drivers at once, each with its batch. With a single driver, the usual case, no task is started."""
    if len(batches) == 1:
        return await call(*next(iter(batches.items())))
    problems: list[Problem] = []

    async def one(driver: DriverName, batch: list[ClaimKey]) -> None:
        problems.extend(await call(driver, batch))

    async with anyio.create_task_group() as tasks:
        for driver, batch in batches.items():
            tasks.start_soon(one, driver, batch)
    return problems
