"""Starts device plugins under test, each with its own directories and kubelet.

Without a command, the plugin that runs in `directory` is tested, and nothing is started.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from devlet.plugins.registration_server import SOCKET
from devlet.sanity.driver import AttachedDriver, Driver, DriverProcess
from devlet.sanity.kubelet import Kubelet
from devlet.sanity.kubelet import Settings as KubeletSettings
from devlet.sanity.rig_device_plugin import DevicePluginRig, Places, Settings
from devlet.sanity.stand import BaseStand, called, check_directory, trimming

__all__ = ["DevicePluginStand"]


@dataclass(slots=True)
class DevicePluginStand(BaseStand):
    directory: Path | None = None
    registry: Path | None = None
    settings: Settings = field(default=Settings())
    kind: str = "device-plugin"

    @property
    def driver(self) -> str:
        return str(self.command) if self.command else f"attached, on {self.directory}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[DevicePluginRig]:
        with self._root() as root:
            async with anyio.create_task_group() as tasks:
                rig = self._rig(self._places(root), tasks)
                try:
                    await self._begin(rig)
                    yield rig
                finally:
                    with anyio.CancelScope(shield=True):
                        await rig.kubelet.stop()
                        if isinstance(rig.driver, DriverProcess):
                            await rig.driver.close()
                    tasks.cancel_scope.cancel()

    def _places(self, root: Path) -> Places:
        places = Places.below(root)
        if self.directory:
            for given in filter(None, (self.directory, self.registry)):
                check_directory(given)
            places = Places(root, self.directory.absolute(), (self.registry or places.registry).absolute())
        for folder in (places.device_plugins, places.registry, places.cdi):
            folder.mkdir(parents=True, exist_ok=True)
        return places

    def _rig(self, places: Places, tasks: TaskGroup) -> DevicePluginRig:
        driver: Driver = AttachedDriver()
        if self.command:
            driver = DriverProcess(self.command.filled(places.words), places.root, places.root / "driver.log")
        tasks.start_soon(trimming, driver)
        below = places.root if self.command else None  # an attached driver may serve anywhere
        settings = KubeletSettings(dial=self.settings.dial, answer=self.settings.answer, below=below)
        return DevicePluginRig(
            places=places,
            driver=driver,
            kubelet=Kubelet(places.device_plugins, places.registry, tasks, settings, self._patience),
            tasks=tasks,
            settings=self.settings,
            change_command=self.change_command,
            cdi_directories=self.cdi_directories,
        )

    async def _begin(self, rig: DevicePluginRig) -> None:
        rig.unready = self._unready
        await rig.kubelet.start()
        if self._unready:
            return
        await rig.come_up(rig.settings.start)
        if rig.unready:
            rig.unready += await _find_unregistered(rig)
            self._unready = rig.unready
        else:
            await rig.kubelet.registrations.settle(rig.settings.settle)


async def _find_unregistered(rig: DevicePluginRig) -> str:
    """Connect to a plugin that serves without being registered, so that most checks can run.

    Returns what to add to the trouble."""

    async def call(path: Path) -> None:
        await rig.kubelet.connect(f"(unregistered {path.name})", path)

    return await called((path for path in rig.places.device_plugins.iterdir() if path.name != SOCKET), call)
