"""What preparing and unpreparing work with: the book and its file, the drivers, and a lock for each claim."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from devlet.errors import PluginError
from devlet.kit.key_locks import KeyLocks
from devlet.node.claims.book import Book
from devlet.node.claims.problems import Problem
from devlet.node.claims.progress import Progress
from devlet.node.claims.records import ClaimKey
from devlet.objects.identifiers import ClaimUID, DriverName, PodUID
from devlet.objects.types.claim import PreparedDevice, ResourceClaim
from devlet.plugins.dra import ClaimProblem, ClaimRef, Service
from devlet.state.checkpoint_file import GroupSaver

__all__ = ["Batches", "Desk", "Driver", "Drivers", "Misplaced", "Read", "Settings"]

Read = Callable[[ClaimKey], Awaitable[ResourceClaim]]
Misplaced = Callable[[ResourceClaim], str]
"""Returns why the claim's devices cannot be used on this node, or an empty string."""
Batches = dict[DriverName, list[ClaimKey]]


@dataclass(frozen=True, slots=True)
class Settings:
    extended: bool = True  # gate DRAExtendedResource
    workloads: bool = False  # gate DRAWorkloadResourceClaims
    reads_at_once: int = 16  # of one pod's claims from the cluster
    cleanups_at_once: int = 16  # of pods that are gone


class Driver(Protocol):
    """One instance of a DRA driver. A PluginError is about all claims of the call."""

    @property
    def service(self) -> Service: ...

    async def prepare(
        self, claims: Sequence[ClaimRef]
    ) -> Mapping[ClaimUID, tuple[PreparedDevice, ...] | ClaimProblem]: ...

    async def unprepare(self, claims: Sequence[ClaimRef]) -> Mapping[ClaimUID, ClaimProblem | None]: ...


class Drivers(Protocol):
    def pick(self, name: DriverName) -> Driver:
        """PluginUnavailable if it is not registered."""
        ...

    def is_usable(self, name: DriverName) -> bool:
        """Whether an instance is connected."""
        ...

    @property
    def version(self) -> int:
        """Grows with each change."""
        ...

    async def changed(self, since: int) -> int:
        """The version, as soon as it is greater."""
        ...


@dataclass(frozen=True, slots=True)
class Desk:
    book: Book
    saver: GroupSaver
    drivers: Drivers
    read: Read
    progress: Progress
    settings: Settings
    locks: KeyLocks[ClaimKey]
    misplaced: Misplaced = lambda claim: ""
    unsaved: set[PodUID] = field(default_factory=set)  # that their claims were let go may not be in the file
    ending: set[PodUID] = field(default_factory=set)  # they are over, and their claims are not unprepared yet

    def unusable(self, name: DriverName) -> str:
        """Why the driver cannot be called now; empty if it can."""
        try:
            self.drivers.pick(name)
        except PluginError as e:
            return e.message
        return "" if self.drivers.is_usable(name) else f"DRA driver {name} is registered, but not connected"

    def reference(self, key: ClaimKey, driver: DriverName) -> ClaimRef:
        """How the driver is told of a claim that is in the book."""
        entry = self.book[key]
        devices = (entry.drivers or {}).get(driver) or ()
        names = tuple(name for device in devices for name in device.cdi_devices or ())
        return ClaimRef(key.namespace, key.name, ClaimUID(entry.uid), names)


async def at_once(
    batches: Batches, call: Callable[[DriverName, list[ClaimKey]], Awaitable[list[Problem]]]
) -> list[Problem]:
    """One call for each driver. A single one needs no tasks of its own, and mostly it is one."""
    if len(batches) == 1:
        return await call(*next(iter(batches.items())))
    problems: list[Problem] = []

    async def one(driver: DriverName, batch: list[ClaimKey]) -> None:
        problems.extend(await call(driver, batch))

    async with anyio.create_task_group() as tasks:
        for driver, batch in batches.items():
            tasks.start_soon(one, driver, batch)
    return problems
