"""A device plugin under test: its process, a kubelet with its own directory, and what can be done to both.

The root is laid out like /var/lib/kubelet, with `device-plugins` and `plugins_registry`, and `cdi` for plugins whose
CDI directory can be set. `stand_device_plugin` starts the plugin, or attaches to a running one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import anyio

from devlet.errors import PluginError
from devlet.plugins.registration_server import SOCKET
from devlet.runtime.cdi.cache import Cache
from devlet.runtime.cdi.registry import Registry
from devlet.sanity import host, rig
from devlet.sanity.check import CannotTell
from devlet.sanity.kubelet import Kubelet, Registration
from devlet.sanity.plugin_client import PluginClient
from devlet.sanity.rig import Rig
from devlet.state import device_checkpoint

__all__ = ["DevicePluginRig", "Places", "Settings"]


@dataclass(frozen=True, slots=True)
class Settings(rig.Settings):
    """Times in seconds. Kubernetes' own sample plugin takes 10 seconds to register after a kubelet restart."""

    slow: float = 3.0  # until a busy kubelet answers Register
    refused: float = 45.0  # until a plugin retries its registration; NVIDIA's does so after 30 s


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
        """The values of the placeholders in commands."""
        return {
            "root": self.root,
            "device_plugins": self.device_plugins,
            "kubelet_sock": self.device_plugins / SOCKET,
            "registry": self.registry,
            "cdi": self.cdi,
        }


@dataclass(slots=True, kw_only=True)
class DevicePluginRig(Rig):
    first_check: ClassVar[str] = "DP-REG-1"

    places: Places
    kubelet: Kubelet
    settings: Settings
    cdi_directories: Sequence[Path] = ()

    @property
    def patience(self) -> float:
        return 4 * self.settings.wait + self.settings.stop

    @property
    def words(self) -> Mapping[str, Path]:
        return self.places.words

    @property
    def is_registered(self) -> bool:
        return self.kubelet.taken > 0

    @property
    def refusals(self) -> Sequence[str]:
        return [each.problem for each in self.kubelet.registrations if each.problem]

    def need_driver(self) -> None:
        if not self.kubelet.plugins:
            raise CannotTell(self.missing)

    @property
    def plugins(self) -> list[PluginClient]:
        """The plugins that registered, or at least listen. Raises CannotTell if there is none."""
        self.need_driver()
        return [self.kubelet.plugins[name] for name in sorted(self.kubelet.plugins)]

    def plugin(self, resource: str) -> PluginClient:
        """Return the current plugin of a resource."""
        if resource not in self.kubelet.plugins:
            raise PluginError(resource, "the plugin is no longer registered")
        return self.kubelet.plugins[resource]

    @property
    def registrations(self) -> list[Registration]:
        """The registrations with an introduction, or else all attempts. Raises CannotTell if there is none."""
        if not (found := list(self.kubelet.registrations)):
            raise CannotTell(self.missing)
        return [each for each in found if each.is_introduced] or found

    @property
    def by_registry(self) -> bool:
        """Whether the plugin is found in the registry directory instead of calling Register."""
        return any(registration.found_at for registration in self.kubelet.registrations)

    @property
    def resources(self) -> set[str]:
        return {plugin.resource for plugin in self.plugins}

    async def ready_again(self, resources: set[str], after: int, within: float | None = None) -> bool:
        """Wait until all resources are registered again, after the first `after` registrations.

        A driver that exits is restarted, as its pod would be. Returns False if the time is up."""
        with anyio.move_on_after(within or self.settings.wait):
            while not resources <= self._since(after):
                await self.revive()
                await self.kubelet.until(self.kubelet.taken + 1, 0.2)
            return True
        return False

    def _since(self, after: int) -> set[str]:
        return {one.resource for one in self.kubelet.registrations.since(after) if not one.problem}

    async def restart_kubelet(self, *, late: float = 0.0) -> None:
        """Restart the kubelet: remove all sockets, wait `late` seconds, and serve kubelet.sock again."""
        await self.kubelet.stop()
        self.remove_sockets()
        await anyio.sleep(late)
        await self.kubelet.start(clean=False)

    def remove_sockets(self) -> None:
        for path in self.places.device_plugins.iterdir():
            if path.is_socket():
                path.unlink(missing_ok=True)

    def leftovers(self) -> list[Path]:
        """Return the files in the directories that do not belong to the kubelet."""
        ours = {SOCKET, device_checkpoint.FILE_NAME}
        own = [path for path in self.places.device_plugins.iterdir() if path.name not in ours]
        return sorted([*own, *self.places.registry.iterdir()])

    @property
    def numa_nodes(self) -> frozenset[int]:
        return host.numa_nodes()

    def cdi(self) -> Registry:
        return Cache([*self.cdi_directories, self.places.cdi]).refresh()
