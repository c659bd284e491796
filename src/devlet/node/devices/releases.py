"""Releasing the devices of pods that have ended, and the hooks that run before other pods can get them."""

import logging
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import anyio
from msgspec import Struct

from devlet.errors import DevletError, Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.node.devices.allocations import Allocation, Allocations
from devlet.node.reports import Report
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.state.checkpoint_file import GroupSaver

__all__ = ["Hooks", "NoHooks", "Release", "Releaser", "releases"]

log = logging.getLogger(__name__)


class Release(Struct, frozen=True):
    """Devices of one resource that a pod no longer uses. `container` is the first of its containers that had them."""

    resource: ResourceName
    devices: tuple[DeviceID, ...]
    pod: PodUID
    container: ContainerName


class Hooks(Protocol):
    async def run(self, release: Release) -> None:
        """Return when other pods may get the devices. A DevletError says why they may not yet."""
        ...


class NoHooks:
    async def run(self, release: Release) -> None:
        pass


def releases(allocations: Sequence[Allocation]) -> list[Release]:
    """Return what the hooks are called with for a pod's allocations: each device once."""
    seen: set[tuple[ResourceName, DeviceID]] = set()
    found = []
    for each in allocations:
        devices = tuple(id for id in each.devices if (each.resource, id) not in seen)
        seen.update((each.resource, id) for id in devices)
        if devices:
            found.append(Release(each.resource, devices, each.pod, each.container))
    return found


class Releaser:
    """Releases devices, and retries hooks that fail until they succeed."""

    def __init__(
        self,
        allocations: Allocations,
        saver: GroupSaver,
        hooks: Hooks,
        clock: Clock,
        retry: Backoff,
        report: Callable[[Report], None],
    ) -> None:
        self._allocations = allocations
        self._saver = saver
        self._hooks = hooks
        self._clock = clock
        self._retry = retry
        self._report = report

    async def release(self, pod: PodUID) -> None:
        """Release all devices of the pod. They are free only after the hooks have run."""
        allocated = self._allocations.of_pod(pod)
        if not allocated or self._allocations.releasing(pod):
            return
        self._allocations.begin_release(pod)
        try:
            for release in releases(allocated):
                await self._run_hooks(release)
            for each in allocated:
                self._allocations.remove(each)
        finally:
            self._allocations.end_release(pod)
        log.info("devices released", extra=facts(podUID=pod, devices=sum(len(each.devices) for each in allocated)))
        try:
            await self._saver.save()
        except Unavailable:  # stale entries on disk are harmless: the next start finds that the pod is gone
            self._saver.save_soon()

    async def retain(self, pods: Collection[PodUID]) -> None:
        """Release the devices of all other pods: they ended while devlet was not running."""
        async with anyio.create_task_group() as tasks:
            for pod in set(self._allocations.pods()).difference(pods):
                tasks.start_soon(self.release, pod)

    async def _run_hooks(self, release: Release) -> None:
        for delay in self._retry.delays(random.random):
            try:
                return await self._hooks.run(release)
            except DevletError as e:
                message = f"devices {', '.join(release.devices)} of {release.resource} are not free yet: {e}"
                self._report(Report("Warning", "DeviceReleaseFailed", message))
                await self._clock.sleep(delay)
