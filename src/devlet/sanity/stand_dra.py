"""Starts DRA drivers under test, each with its own directories, kubelet and API server.

Without a command, a running driver is tested in its own cluster, and nothing is started.
"""

import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from devlet.objects.documents import Document
from devlet.plugins.channels import connection
from devlet.sanity import api_server
from devlet.sanity.api_server import ApiServer
from devlet.sanity.cdi_directories import CdiDirectories
from devlet.sanity.dra_kubelet import DraKubelet
from devlet.sanity.dra_kubelet import Settings as KubeletSettings
from devlet.sanity.driver import AttachedDriver, Command, Driver, DriverProcess
from devlet.sanity.rig_dra import DraPlaces, DraRig, Settings
from devlet.sanity.slice_history import SliceHistory
from devlet.sanity.stand import BaseStand, called, check_directory, trimming

__all__ = ["DraStand"]

_GREETING = 64 << 10  # bytes
_INSTANCES = ("one", "two")


@dataclass(slots=True)
class DraStand(BaseStand):
    """A stand for DRA drivers. A running driver needs `registry`, `kubeconfig` and `node`."""

    second: str = ""
    registry: Path | None = None
    kubeconfig: Path | None = None
    node: str = "sanity-node"
    configs: Sequence[Document] = ()
    settings: Settings = field(default=Settings())
    kind: str = "dra"
    _silent: bool = False  # it publishes nothing

    @property
    def driver(self) -> str:
        return str(self.command) if self.command else f"attached, in {self.registry}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[DraRig]:
        with self._root() as root:
            async with self._served(root) as api, anyio.create_task_group() as tasks:
                rig = self._rig(self._places(root), api, tasks)
                try:
                    await self._begin(rig)
                    yield rig
                finally:
                    with anyio.CancelScope(shield=True):
                        await rig.kubelet.stop()
                        for driver in (rig.driver, rig.second):
                            if isinstance(driver, DriverProcess):
                                await driver.close()
                    tasks.cancel_scope.cancel()

    def _served(self, root: Path) -> AbstractAsyncContextManager[ApiServer]:
        if self.kubeconfig:
            return api_server.joined(self.kubeconfig, self.node)
        (root / "api").mkdir(mode=0o700, exist_ok=True)
        return api_server.embedded(root / "api", self.node)

    def _places(self, root: Path) -> DraPlaces:
        places = DraPlaces.below(root, self.node)
        if self.registry:
            check_directory(self.registry)
            places = replace(places, registry=self.registry.absolute())
        if self.kubeconfig:
            places = replace(places, kubeconfig=self.kubeconfig.absolute())
        for folder in (places.registry, places.plugins, places.cdi):
            folder.mkdir(parents=True, exist_ok=True)
        return places

    def _rig(self, places: DraPlaces, api: ApiServer, tasks: TaskGroup) -> DraRig:
        driver: Driver = AttachedDriver()
        second: Driver | None = None
        if self.command:
            driver = self._process(self.command, places, 0)
            if self.second:
                other = Command(shlex.split(self.second), self.command.env, self.command.private_mount)
                second = self._process(other, places, 1)
            elif any("{instance}" in word for word in (*self.command.words, *self.command.env.values())):
                second = self._process(self.command, places, 1)
        for each in filter(None, (driver, second)):
            tasks.start_soon(trimming, each)
        below = places.root if self.command else None  # an attached driver may serve anywhere
        settings = KubeletSettings(dial=self.settings.dial, answer=self.settings.answer, below=below)
        return DraRig(
            places=places,
            driver=driver,
            kubelet=DraKubelet(places.registry, places.root, tasks, settings, self._patience),
            api=api,
            history=SliceHistory(api.cluster),
            tasks=tasks,
            settings=self.settings,
            cdi=CdiDirectories([*self.cdi_directories, places.cdi]),
            second=second,
            change_command=self.change_command,
            configs=self.configs,
        )

    def _process(self, command: Command, places: DraPlaces, number: int) -> DriverProcess:
        words = {**places.words, "instance": Path(_INSTANCES[number])}
        log = places.root / ("driver.log" if number == 0 else f"driver-{number + 1}.log")
        return DriverProcess(command.filled(words), places.root, log)

    async def _begin(self, rig: DraRig) -> None:
        rig.unready = self._unready
        await rig.tasks.start(rig.history.run)
        await rig.kubelet.start()
        if self._unready:
            return
        await rig.come_up(rig.settings.start)
        if rig.unready:
            rig.unready += await _find_unregistered(rig)
            self._unready = rig.unready
        if rig.kubelet.drivers and not self._silent:
            self._silent = not await rig.published_again(rig.settings.wait)
            await rig.history.changes.settle(rig.settings.settle)


async def _find_unregistered(rig: DraRig) -> str:
    """Connect to a driver that serves without being registered, so that most checks can run.

    Its name is that of its directory. Returns what to add to the trouble."""

    async def call(path: Path) -> None:
        await rig.kubelet.adopt(path.parent.name, path)

    async def greet(path: Path) -> None:
        async with connection(path.name, path, within=rig.settings.dial, max_message=_GREETING):
            return

    text = await called(rig.places.plugins.rglob("*"), call)
    return text if rig.refusals else text + await called(rig.places.registry.iterdir(), greet)
