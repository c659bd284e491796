"""Where DRA drivers under test are started, each with directories, a kubelet and an API server of its own.

Without a command nothing is started: a driver is looked at that runs already, in its own cluster.
"""

import shlex
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from devlet.errors import InvalidInput, PluginError
from devlet.kit import socket_paths
from devlet.objects.documents import Document
from devlet.runtime.cdi.spec_dir import DEFAULT_DIRECTORIES
from devlet.sanity import api_server
from devlet.sanity.api_server import ApiServer
from devlet.sanity.cdi_directories import CdiDirectories
from devlet.sanity.dra_kubelet import DraKubelet
from devlet.sanity.dra_kubelet import Settings as KubeletSettings
from devlet.sanity.driver import AttachedDriver, Command, Driver, DriverProcess
from devlet.sanity.rig_dra import DraPlaces, DraRig, Settings, log_of
from devlet.sanity.slice_history import SliceHistory

__all__ = ["DraStand"]

_LONG_NAME = 40  # characters that a driver's socket may have at least
_INSTANCES = ("one", "two")


@dataclass(slots=True)
class DraStand:
    """Starts `command` each time, or, without one, finds the driver that runs: then `registry`, `kubeconfig` and `node`
    are needed. `keep`: where roots and logs are made, and stay."""

    command: Command | None = None
    second: str = ""
    registry: Path | None = None
    kubeconfig: Path | None = None
    node: str = "sanity-node"
    change_command: str = ""
    configs: Sequence[Document] = ()
    cdi_directories: Sequence[Path] = DEFAULT_DIRECTORIES
    settings: Settings = field(default=Settings())
    keep: Path | None = None
    kind: str = "dra"
    _unready: str = ""
    _silent: bool = False  # it publishes nothing
    _opened: int = 0

    @property
    def driver(self) -> str:
        return str(self.command) if self.command else f"attached, in {self.registry}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[DraRig]:
        self._opened += 1
        root = self._root()
        try:
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
        finally:
            if not self.keep:
                shutil.rmtree(root, ignore_errors=True)

    def _served(self, root: Path) -> AbstractAsyncContextManager[ApiServer]:
        if self.kubeconfig:
            return api_server.joined(self.kubeconfig, self.node)
        (root / "api").mkdir(mode=0o700, exist_ok=True)
        return api_server.embedded(root / "api", self.node)

    def _root(self) -> Path:
        if self.keep:
            root = self.keep.absolute() / f"{self._opened:03}"
            root.mkdir(parents=True, exist_ok=True)
        else:
            root = Path(tempfile.mkdtemp(prefix="ds"))
        longest = root / "plugins_registry" / ("x" * _LONG_NAME)
        if socket_paths.length(longest) > socket_paths.MAX_BYTES:
            raise InvalidInput(f"{root} is too long for sockets: use a shorter directory (TMPDIR, or --keep)")
        return root

    def _places(self, root: Path) -> DraPlaces:
        places = DraPlaces.below(root, self.node)
        if self.registry:
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
        settings = KubeletSettings(dial=self.settings.dial, answer=self.settings.answer)
        kubelet = DraKubelet(places.registry, places.root, tasks, settings)
        cdi = CdiDirectories([*self.cdi_directories, places.cdi])
        return DraRig(
            places,
            driver,
            kubelet,
            api,
            SliceHistory(api.cluster),
            tasks,
            self.settings,
            cdi,
            second,
            self.change_command,
            self.configs,
        )

    def _process(self, command: Command, places: DraPlaces, number: int) -> DriverProcess:
        words = {**places.words, "instance": Path(_INSTANCES[number])}
        log = places.root / ("driver.log" if number == 0 else f"driver-{number + 1}.log")
        return DriverProcess(command.filled(words), places.root, log)

    async def _begin(self, rig: DraRig) -> None:
        """A driver that did not come up once is not waited for again."""
        rig.unready = self._unready
        await rig.tasks.start(rig.history.run)
        await rig.kubelet.start()
        if self._unready:
            return
        if isinstance(rig.driver, DriverProcess):
            await rig.driver.start()
            rig.tasks.start_soon(_trimming, rig.driver)
        await _until_registered(rig)
        if not rig.kubelet.drivers:
            self._unready = rig.unready = _why(rig)
            await _find_unregistered(rig)
        if rig.kubelet.drivers and not self._silent:
            self._silent = not await rig.published_again(rig.settings.wait)
            await _settle(rig)


async def _trimming(driver: DriverProcess) -> None:
    while True:
        driver.trim_log()
        await anyio.sleep(0.5)


async def _until_registered(rig: DraRig) -> None:
    with anyio.move_on_after(rig.settings.wait):
        while not rig.kubelet.drivers and not rig.driver.ending:
            await rig.kubelet.until(rig.kubelet.taken + 1, 0.1)


async def _settle(rig: DraRig) -> None:
    """Until no slice has changed for a while; a flood is not waited for."""
    for _ in range(20):
        before = rig.history.count
        await anyio.sleep(rig.settings.settle)
        if rig.history.count == before:
            return


def _why(rig: DraRig) -> str:
    refused = [each.problem for each in rig.kubelet.greetings if each.problem]
    tried = f" ({len(refused)} tries failed, the last one with: {refused[-1]})" if refused else ""
    if rig.driver.ending:
        return f"the driver {rig.driver.ending} before it was registered{tried}; {log_of(rig.driver)}"
    return f"the driver was not registered within {rig.settings.wait:g} s{tried}; {log_of(rig.driver)}"


async def _find_unregistered(rig: DraRig) -> None:
    """It may still serve: then most of what it does can be looked at. Its name is that of its directory."""
    for path in sorted(rig.places.plugins.rglob("*")):
        if path.is_socket():
            try:
                await rig.kubelet.adopt(path.parent.name, path)
            except PluginError:
                continue
