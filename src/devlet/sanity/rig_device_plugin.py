"""A device plugin under test: its process, a kubelet for it on a directory of its own, and what can be done to both.

Below the root it is as below /var/lib/kubelet: `device-plugins`, `plugins_registry`. Beside them is `cdi`, for drivers
that can be told where to write their specs. With `attach` the directories are those of a driver that runs already.
"""

import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from devlet.errors import InvalidInput, PluginError
from devlet.kit import socket_paths
from devlet.plugins.registration_server import CHECKPOINT, SOCKET
from devlet.runtime.cdi.cache import Cache
from devlet.runtime.cdi.registry import Registry
from devlet.runtime.cdi.spec_dir import DEFAULT_DIRECTORIES
from devlet.sanity import host
from devlet.sanity.check import CannotTell
from devlet.sanity.driver import AttachedDriver, Command, Driver, DriverProcess
from devlet.sanity.kubelet import Kubelet, Registration
from devlet.sanity.kubelet import Settings as KubeletSettings
from devlet.sanity.plugin_client import PluginClient
from devlet.testing.dice import Dice

__all__ = ["DevicePluginRig", "DevicePluginStand", "Places", "Settings"]

_LONG_NAME = 40  # characters that a plugin's socket may have at least


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds. `wait` is how long a driver may take to register; the reference's own sample plugin takes 10 after a
    kubelet's restart. `stop` is what pods have by default."""

    wait: float = 30.0
    settle: float = 0.5  # for further resources, after one has registered
    quiet: float = 1.0  # in which nothing should happen
    answer: float = 10.0
    dial: float = 10.0
    late: float = 2.0  # between two steps of a kubelet's start
    slow: float = 3.0  # until a kubelet answers that has much to do
    stop: float = 30.0


@dataclass(frozen=True, slots=True)
class Places:
    """The directories of a driver."""

    root: Path
    device_plugins: Path
    registry: Path

    @staticmethod
    def below(root: Path) -> "Places":
        return Places(root, root / "device-plugins", root / "plugins_registry")

    @property
    def cdi(self) -> Path:
        return self.root / "cdi"

    @property
    def words(self) -> Mapping[str, Path]:
        """What stands in braces in commands."""
        return {
            "root": self.root,
            "device_plugins": self.device_plugins,
            "kubelet_sock": self.device_plugins / SOCKET,
            "registry": self.registry,
            "cdi": self.cdi,
        }


@dataclass(slots=True)
class DevicePluginRig:
    places: Places
    driver: Driver
    kubelet: Kubelet
    tasks: TaskGroup
    settings: Settings
    change_command: str = ""
    cdi_directories: Sequence[Path] = ()
    dice: Dice = field(default_factory=lambda: Dice(0))
    unready: str = ""  # why it could not be driven from the beginning
    stopped: bool = False  # by a check

    @property
    def trouble(self) -> str:
        if self.unready:
            return self.unready
        if self.driver.ending and not self.stopped:
            return f"the driver {self.driver.ending}; {_log(self.driver)}"
        return ""

    @property
    def is_hopeless(self) -> bool:
        return bool(self.unready)

    @property
    def patience(self) -> float:
        return 4 * self.settings.wait + self.settings.stop

    def log(self) -> str:
        return self.driver.log()

    @property
    def plugins(self) -> list[PluginClient]:
        """What registered, or at least listens; CannotTell if nothing does."""
        if not self.kubelet.plugins:
            raise CannotTell(self._missing)
        return [self.kubelet.plugins[name] for name in sorted(self.kubelet.plugins)]

    @property
    def _missing(self) -> str:
        """The trouble is told once, by DP-REG-1 and in the report."""
        if self.unready:
            return "the driver did not come up: see DP-REG-1"
        return self.trouble or "the driver has not registered, so there is nothing to call"

    def plugin(self, resource: str) -> PluginClient:
        """The present one of that resource."""
        if resource not in self.kubelet.plugins:
            raise PluginError(resource, "it is not registered any more")
        return self.kubelet.plugins[resource]

    @property
    def registrations(self) -> list[Registration]:
        """CannotTell if none was tried."""
        if not self.kubelet.registrations:
            raise CannotTell(self._missing)
        return list(self.kubelet.registrations)

    @property
    def by_registry(self) -> bool:
        """Whether it is found in the registry directory, and does not register by itself."""
        return any(registration.found_at for registration in self.kubelet.registrations)

    @property
    def resources(self) -> set[str]:
        return {plugin.resource for plugin in self.plugins}

    async def ready_again(self, resources: set[str], after: int) -> bool:
        """Whether all of them have been registered since there were `after` registrations. A driver that ends is
        started again, as its pod would be."""
        with anyio.move_on_after(self.settings.wait):
            while not resources <= self._since(after):
                await self.revive()
                await self.kubelet.until(self.kubelet.taken + 1, 0.2)
            return True
        return False

    def _since(self, after: int) -> set[str]:
        newest = list(self.kubelet.registrations)[-(self.kubelet.count - after) or len(self.kubelet.registrations) :]
        return {one.resource for one in newest if not one.problem} if self.kubelet.count > after else set()

    async def revive(self) -> None:
        if self.driver.ending:
            await self.driver.start()

    async def restart_kubelet(self, *, late: float = 0.0) -> None:
        """Its sockets are removed, and kubelet.sock is there again; in between so many seconds pass."""
        await self.kubelet.stop()
        self.remove_sockets()
        await anyio.sleep(late)
        await self.kubelet.start(clean=False)

    def remove_sockets(self) -> None:
        for path in self.places.device_plugins.iterdir():
            if path.is_socket():
                path.unlink(missing_ok=True)

    def leftovers(self) -> list[Path]:
        """What lies in the directories and is not the kubelet's."""
        ours = {SOCKET, CHECKPOINT}
        own = [path for path in self.places.device_plugins.iterdir() if path.name not in ours]
        return sorted([*own, *self.places.registry.iterdir()])

    def need_change(self) -> None:
        """CannotTell if nobody said how to make the devices change."""
        if not self.change_command:
            raise CannotTell("nobody said how to make the devices change: give --change COMMAND")

    async def change_devices(self) -> None:
        """Run the command that makes other devices be there."""
        self.need_change()
        command = self.change_command
        for word, path in self.places.words.items():
            command = command.replace(f"{{{word}}}", str(path))
        done = await anyio.run_process(["sh", "-c", command], check=False, stderr=subprocess.STDOUT)
        if done.returncode:
            text = done.stdout.decode(errors="replace").strip()[:300]
            raise CannotTell(f"the command of --change exited with {done.returncode}: {text}")

    def log_bytes(self) -> int:
        """How much the driver has written. CannotTell if it is not ours."""
        if not isinstance(self.driver, DriverProcess):
            raise CannotTell("the driver is attached: its log is not known")
        if self.driver.pid is None:
            raise CannotTell("the driver does not run")
        return self.driver.written()

    @property
    def numa_nodes(self) -> frozenset[int]:
        return host.numa_nodes()

    def usage(self) -> host.Usage:
        """Of the driver's process. CannotTell if it cannot be looked at."""
        if self.driver.pid is None:
            raise CannotTell("the driver's process is not known")
        try:
            return host.usage(self.driver.pid)
        except OSError as e:
            raise CannotTell(f"the driver's process cannot be looked at: {e}") from e

    def cdi(self) -> Registry:
        return Cache([*self.cdi_directories, self.places.cdi]).refresh()


@dataclass(slots=True)
class DevicePluginStand:
    """Starts `command` each time, or, without one, waits for the driver that runs on `directory`. `keep`: where roots
    and logs are made, and stay."""

    command: Command | None = None
    directory: Path | None = None
    registry: Path | None = None
    change_command: str = ""
    cdi_directories: Sequence[Path] = DEFAULT_DIRECTORIES
    settings: Settings = Settings()
    keep: Path | None = None
    kind: str = "device-plugin"
    _unready: str = ""
    _opened: int = 0

    @property
    def driver(self) -> str:
        return str(self.command) if self.command else f"attached, on {self.directory}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[DevicePluginRig]:
        self._opened += 1
        root = self._root()
        try:
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
        finally:
            if not self.keep:
                shutil.rmtree(root, ignore_errors=True)

    def _root(self) -> Path:
        if self.keep:
            root = self.keep.absolute() / f"{self._opened:03}"
            root.mkdir(parents=True, exist_ok=True)
        else:
            root = Path(tempfile.mkdtemp(prefix="ds"))
        longest = root / "device-plugins" / ("x" * _LONG_NAME)
        if socket_paths.length(longest) > socket_paths.MAX_BYTES:
            raise InvalidInput(f"{root} is too long for sockets: use a shorter directory (TMPDIR, or --keep)")
        return root

    def _places(self, root: Path) -> Places:
        places = Places.below(root)
        if self.directory:
            places = Places(root, self.directory.absolute(), (self.registry or places.registry).absolute())
        for folder in (places.device_plugins, places.registry, places.cdi):
            folder.mkdir(parents=True, exist_ok=True)
        return places

    def _rig(self, places: Places, tasks: TaskGroup) -> DevicePluginRig:
        driver: Driver = AttachedDriver()
        if self.command:
            driver = DriverProcess(self.command.filled(places.words), places.root, places.root / "driver.log")
        settings = KubeletSettings(dial=self.settings.dial, answer=self.settings.answer)
        kubelet = Kubelet(places.device_plugins, places.registry, tasks, settings)
        return DevicePluginRig(places, driver, kubelet, tasks, self.settings, self.change_command, self.cdi_directories)

    async def _begin(self, rig: DevicePluginRig) -> None:
        """A driver that did not come up once is not waited for again."""
        rig.unready = self._unready
        await rig.kubelet.start()
        if self._unready:
            return
        if isinstance(rig.driver, DriverProcess):
            await rig.driver.start()
            rig.tasks.start_soon(_trimming, rig.driver)
        await _until_registered(rig)
        if not rig.kubelet.taken:
            self._unready = rig.unready = _why(rig)
            await _find_unregistered(rig)
        else:
            await rig.kubelet.settle(rig.settings.settle)


async def _trimming(driver: DriverProcess) -> None:
    while True:
        driver.trim_log()
        await anyio.sleep(0.5)


async def _until_registered(rig: DevicePluginRig) -> None:
    with anyio.move_on_after(rig.settings.wait):
        while not rig.kubelet.taken and not rig.driver.ending:
            await rig.kubelet.until(1, 0.1)


def _why(rig: DevicePluginRig) -> str:
    refused = [each.problem for each in rig.kubelet.registrations if each.problem]
    tried = f" ({len(refused)} registrations were refused, the last one with: {refused[-1]})" if refused else ""
    if rig.driver.ending:
        return f"the driver {rig.driver.ending} before it had registered{tried}; {_log(rig.driver)}"
    return f"the driver did not register within {rig.settings.wait:g} s{tried}; {_log(rig.driver)}"


def _log(driver: Driver) -> str:
    text = driver.log()
    return "the end of its log:\n" + text if text else "its log is empty"


async def _find_unregistered(rig: DevicePluginRig) -> None:
    """It may still serve: then most of what it does can be looked at."""
    for path in sorted(rig.places.device_plugins.iterdir()):
        if path.is_socket() and path.name != SOCKET:
            try:
                await rig.kubelet.connect(f"(unregistered {path.name})", path)
            except PluginError:
                continue
