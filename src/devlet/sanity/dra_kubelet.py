"""A kubelet for DRA drivers: it finds their sockets in a directory, registers them and connects.

Unlike a real kubelet it accepts a driver with a wrong type, name or endpoint: that is a finding, and the rest of the
driver can still be tested.
"""

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from devlet.errors import InvalidInput, PluginError, PluginRefused, PluginUnavailable
from devlet.plugins import endpoints
from devlet.plugins.channels import Connection, connection, listener_pid
from devlet.sanity import registry_watch
from devlet.sanity.dra_client import SERVICES, DraClient, connected
from devlet.sanity.journal import Journal
from devlet.sanity.patience import Patience
from devlet.sanity.registry_watch import RegistryWatch
from devlet.wire.pluginregistration import api_pb2 as pb

__all__ = ["DraKubelet", "Greeting", "Settings"]

_KEPT = 1_000
_MESSAGE = 1 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds."""

    dial: float = 10.0
    answer: float = 45.0
    info: float = 1.0
    notify: float = 5.0
    below: Path | None = None  # connect only to sockets in this directory; None means anywhere


@dataclass(frozen=True, slots=True)
class Greeting:
    """An attempt to register the driver at `found_at`, which serves on `path`.

    `problem` says why it is not registered, and `notified` is its error from NotifyRegistrationStatus. `late` means
    that the driver did not listen on `path` yet."""

    found_at: Path
    type: str = ""
    name: str = ""
    endpoint: str = ""
    versions: tuple[str, ...] = ()
    path: Path = Path()
    problem: str = ""
    late: bool = False
    notified: str = ""
    adopted: bool = False  # called although it is not registered

    @property
    def service(self) -> str:
        """The service to call: the first one in its list that a kubelet knows."""
        return next((version for version in self.versions if version in SERVICES), "")

    @property
    def is_registered(self) -> bool:
        return not self.problem


class DraKubelet:
    """The kubelet. `drivers` maps sockets to registered drivers. The next `refusals` registrations are refused."""

    def __init__(
        self,
        registry: Path,
        root: Path,
        tasks: TaskGroup,
        settings: Settings = Settings(),
        patience: Patience | None = None,
    ) -> None:
        self.registry = registry
        self.greetings = Journal[Greeting](_KEPT)
        self.drivers: dict[Path, tuple[Greeting, DraClient]] = {}
        self.refusals = 0
        self._root = root
        self.patience = patience or Patience()
        self._settings = settings
        self._life: AsyncExitStack | None = None
        self._connections: dict[Path, AsyncExitStack] = {}
        self._watch = RegistryWatch(registry, tasks, self._greet, self._forget)

    @property
    def is_running(self) -> bool:
        return self._life is not None

    @property
    def taken(self) -> int:
        return sum(each.is_registered for each in self.greetings)

    async def start(self) -> None:
        """Start watching the directory, and register the drivers that are already there."""
        self._life = AsyncExitStack()
        await self._life.enter_async_context(self._watch.looking())

    async def stop(self) -> None:
        """Stop and close all connections. Stopping twice is allowed."""
        life, self._life = self._life, None
        if life:
            with anyio.CancelScope(shield=True):
                await life.aclose()
                for path in list(self._connections):
                    await self._forget(path)

    @property
    def count(self) -> int:
        """The number of registration attempts so far."""
        return self.greetings.added

    async def until(self, count: int, within: float) -> bool:
        """Wait until so many registrations have succeeded. Return False if the time is up."""
        return await self.greetings.until(lambda: self.taken >= count, within)

    async def ask(self, path: Path) -> pb.PluginInfo:
        """Call GetInfo without registering the driver."""
        async with self._dialled(path) as dialled:
            return await registry_watch.info(dialled, self._settings.answer)

    async def notify(self, path: Path, error: str = "") -> None:
        async with self._dialled(path) as dialled:
            await self._notify(dialled, error)

    async def adopt(self, name: str, path: Path) -> None:
        """Connect to a driver that could not be registered. Raises PluginError if no driver serves on the socket."""
        greeting = Greeting(path, "", name, str(path), tuple(SERVICES), path, "it was not registered", adopted=True)
        client = await self._connect(greeting)
        await client.prepare()
        self.drivers[path] = (greeting, client)
        self.greetings.append(greeting)

    # Greeting

    async def _greet(self, path: Path) -> bool:
        """Try to register the driver on a socket. Return whether it is registered."""
        greeting, client = Greeting(path, path=path), None
        try:
            async with self._dialled(path) as dialled:
                info = await registry_watch.info(dialled, self._settings.info)
                greeting = Greeting(path, info.type, info.name, info.endpoint, tuple(info.supported_versions), path)
                greeting, client = await self._registered(greeting, dialled.pid)
                try:
                    await self._notify(dialled, greeting.problem)
                except PluginError as e:
                    greeting = replace(greeting, notified=e.message, problem=greeting.problem or e.message)
        except PluginError as e:
            greeting = replace(greeting, problem=f"{path.name}: {e.message}")
        self.greetings.append(greeting)
        if client is None or not greeting.is_registered:
            await self._forget(path)
            return False
        self.drivers[path] = (greeting, client)
        return True

    async def _registered(self, greeting: Greeting, pid: int | None) -> tuple[Greeting, DraClient | None]:
        try:
            greeting = replace(greeting, path=self._endpoint(greeting, pid))
        except InvalidInput as e:
            return replace(greeting, problem=str(e)), None
        if self.refusals:
            self.refusals -= 1
            return replace(greeting, problem="refused on purpose, like a kubelet that cannot register it yet"), None
        greeting = replace(greeting, late=_is_late(greeting.path))
        try:
            return greeting, await self._connect(greeting)
        except PluginError as e:
            return replace(greeting, problem=e.message), None

    async def _connect(self, greeting: Greeting) -> DraClient:
        settings = self._settings
        if not greeting.service:
            versions = ", ".join(greeting.versions) or "none"
            raise PluginRefused(greeting.name, f"none of its supported versions is known: {versions}")
        async with AsyncExitStack() as stack:
            dialled = connected(
                greeting.name,
                greeting.path,
                greeting.service,
                dial=settings.dial,
                answer=settings.answer,
                patience=self.patience,
                below=settings.below,
            )
            client = await stack.enter_async_context(dialled)
            self._connections[greeting.found_at] = stack.pop_all()
        return client

    async def _forget(self, path: Path) -> None:
        self.drivers.pop(path, None)
        if stack := self._connections.pop(path, None):
            await stack.aclose()

    def _endpoint(self, greeting: Greeting, pid: int | None) -> Path:
        """Return the path of the endpoint, and search for a relative one, which a real kubelet could not use.

        Raises InvalidInput if the suite must not connect to it."""
        endpoint, below = greeting.endpoint, self._settings.below
        if not endpoint:
            return greeting.found_at
        if endpoint.startswith("/"):
            return endpoints.locate(Path(endpoint), below, pid) if below else Path(endpoint)
        return next(iter(sorted(self._root.rglob(Path(endpoint).name))), greeting.found_at.parent / endpoint)

    def _dialled(self, path: Path) -> AbstractAsyncContextManager[Connection]:
        settings = self._settings
        return connection(path.name, path, within=settings.dial, max_message=_MESSAGE, below=settings.below)

    async def _notify(self, dialled: Connection, error: str) -> None:
        try:
            await registry_watch.notify(dialled, error, self._settings.notify)
        except PluginUnavailable:
            raise
        except PluginError:
            if not error:  # Kubernetes' own helper answers a refusal with an error
                raise


def _is_late(path: Path) -> bool:
    try:
        listener_pid(path)
    except OSError:
        return True
    return False
