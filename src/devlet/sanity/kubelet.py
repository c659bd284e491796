"""A kubelet for device plugins that records everything and can misbehave on request.

It serves `kubelet.sock`, registers sockets that appear in the registry directory, connects to registered plugins and
keeps one ListAndWatch stream open to each. Unlike a real kubelet it accepts a plugin with a wrong version or name: that
is a finding, and the rest of the plugin can still be tested.
"""

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import anyio
import grpc
from anyio.abc import TaskGroup
from google.protobuf.message import DecodeError

from devlet.errors import InvalidInput, PluginError, PluginRefused, PluginUnavailable
from devlet.plugins import endpoints
from devlet.plugins.channels import Connection, connection
from devlet.plugins.registration_server import SOCKET, remove_sockets
from devlet.sanity import registry_watch
from devlet.sanity.journal import Journal
from devlet.sanity.patience import Patience
from devlet.sanity.plugin_client import PluginClient, connected
from devlet.sanity.registry_watch import RegistryWatch
from devlet.sdk.server import Context, Methods, SocketServer, Unary
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb
from devlet.wire.pluginregistration import api_pb2 as pb_watcher

__all__ = ["Kubelet", "Registration", "Settings"]

_KEPT = 1_000  # registrations, so that a driver cannot fill the memory
_GREETING = 64 << 10  # bytes of a response to GetInfo


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds. A real kubelet dials for 10 seconds and waits forever for most responses."""

    dial: float = 10.0
    answer: float = 10.0
    info: float = 1.0
    notify: float = 5.0
    below: Path | None = None  # connect only to sockets in this directory; None means anywhere


@dataclass(frozen=True, slots=True)
class Registration:
    """A registration attempt. `package` is the API that was used, `versions` those that the plugin offers, and `path`
    its socket. `problem` says why the attempt failed."""

    package: str
    versions: tuple[str, ...]
    endpoint: str
    resource: str
    path: Path
    options: pb.DevicePluginOptions
    found_at: Path | None = None  # in the registry directory
    problem: str = ""
    type: str = ""  # of the registry directory

    @property
    def is_introduced(self) -> bool:
        """Whether the plugin introduced itself; if it did not, a kubelet asks again."""
        return not self.found_at or bool(self.type or self.resource or self.versions)


class Kubelet:
    """The kubelet. It refuses the next `refusals` registrations, and answers each after `slowness` seconds."""

    def __init__(
        self,
        directory: Path,
        registry: Path,
        tasks: TaskGroup,
        settings: Settings = Settings(),
        patience: Patience | None = None,
    ) -> None:
        self.directory = directory
        self.registry = registry
        self.registrations = Journal[Registration](_KEPT)
        self.plugins: dict[str, PluginClient] = {}
        self.refusals = 0
        self.slowness = 0.0
        self._patience = patience or Patience()
        self._settings = settings
        self._tasks = tasks
        self._life: AsyncExitStack | None = None
        self._watch = RegistryWatch(registry, tasks, self._greet, self._forget)

    @property
    def is_running(self) -> bool:
        return self._life is not None

    async def start(self, *, clean: bool = True) -> None:
        """Start as a kubelet does: remove the sockets of plugins, if `clean`, and create kubelet.sock.

        Raises InUse if another kubelet serves there."""
        if clean:
            remove_sockets(self.directory)
        self._life = AsyncExitStack()
        methods = {f"/{package}.Registration/Register": self._registered(package) for package in _PACKAGES}
        try:
            server = SocketServer(self.directory / SOCKET, [Methods(methods)])
            await self._life.enter_async_context(server.serving())
            await self._life.enter_async_context(self._watch.looking())
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop and close all connections. Stopping twice is allowed."""
        life, self._life = self._life, None
        if life:
            with anyio.CancelScope(shield=True):
                self.plugins.clear()
                await life.aclose()

    @property
    def count(self) -> int:
        """The number of registration attempts so far."""
        return self.registrations.added

    async def until(self, count: int, within: float) -> bool:
        """Wait until so many registrations have succeeded. Return False if the time is up."""
        return await self.registrations.until(lambda: self.taken >= count, within)

    @property
    def taken(self) -> int:
        return sum(not registration.problem for registration in self.registrations)

    async def connect(self, resource: str, path: Path) -> PluginClient:
        """Connect to a plugin. Raises PluginError if no plugin serves on the socket."""
        life, settings = self._life, self._settings
        async with AsyncExitStack() as stack:
            dialled = connected(
                resource,
                path,
                self._tasks,
                dial=settings.dial,
                answer=settings.answer,
                patience=self._patience,
                below=settings.below,
            )
            client = await stack.enter_async_context(dialled)
            await client.options()
            if life is None or life is not self._life:
                raise PluginUnavailable(resource, "the kubelet of the suite has been stopped")
            life.push_async_exit(stack.pop_all())
        if before := self.plugins.get(resource):
            before.watch.close()
        self.plugins[resource] = client
        client.start_watch()
        return client

    def _registered(self, package: str) -> Unary:
        async def register(blob: bytes, context: Context) -> bytes:
            registration = await self._register(package, blob)
            self.registrations.append(registration)
            if registration.problem:
                await context.abort(grpc.StatusCode.UNKNOWN, registration.problem)
            return pb.Empty().SerializeToString()

        return register

    async def _register(self, package: str, blob: bytes) -> Registration:
        try:
            request = pb.RegisterRequest.FromString(blob)
        except DecodeError as e:
            problem = f"the RegisterRequest cannot be decoded: {e}"
            return Registration(package, (), "", "", self.directory, pb.DevicePluginOptions(), problem=problem)
        path = self._path(request.endpoint)
        problem = await self._problem(package, request.resource_name, path)
        return Registration(
            package, (request.version,), request.endpoint, request.resource_name, path, request.options, problem=problem
        )

    async def _problem(self, package: str, resource: str, path: Path) -> str:
        if self.refusals:
            self.refusals -= 1
            return "refused on purpose, like a kubelet that cannot register a plugin yet"
        if package != "v1beta1":
            return f"kubelets no longer support the API {package}, which is that of Kubernetes 1.8 and 1.9"
        try:
            await anyio.sleep(self.slowness)
            await self.connect(resource, path)
        except PluginError as e:
            return f"failed to dial device plugin: {e.message}"
        return ""

    def _path(self, endpoint: str) -> Path:
        """Return the path of an endpoint. A real kubelet would look only in its own directory."""
        inside = self.directory / endpoint.lstrip("/")
        return Path(endpoint) if endpoint.startswith("/") and not inside.exists() else inside

    # The registry directory

    async def _greet(self, path: Path) -> bool:
        """Try to register the plugin on a socket. Return whether it is registered."""
        settings = self._settings
        try:
            async with self._dialled(path) as dialled:
                info = await registry_watch.info(dialled, settings.info)
                registration = await self._introduced(path, info, dialled.pid)
                await registry_watch.notify(dialled, registration.problem, settings.notify)
        except PluginError as e:
            registration = Registration(
                "pluginregistration", (), "", "", path, pb.DevicePluginOptions(), path, f"{path.name}: {e}"
            )
        self.registrations.append(registration)
        return not registration.problem

    async def ask(self, path: Path) -> pb_watcher.PluginInfo:
        """Call GetInfo without registering the plugin."""
        async with self._dialled(path) as dialled:
            return await registry_watch.info(dialled, self._settings.answer)

    async def _forget(self, path: Path) -> None:
        """Do nothing: a device plugin stays registered until its connection breaks."""

    def _dialled(self, path: Path) -> AbstractAsyncContextManager[Connection]:
        settings = self._settings
        return connection(path.name, path, within=settings.dial, max_message=_GREETING, below=settings.below)

    def _endpoint(self, info: pb_watcher.PluginInfo, path: Path, pid: int | None) -> Path:
        announced, below = Path(info.endpoint or path), self._settings.below
        if below is None or not announced.is_absolute():
            return announced
        try:
            return endpoints.locate(announced, below, pid)
        except InvalidInput as e:
            raise PluginRefused(info.name, str(e)) from e

    async def _introduced(self, path: Path, info: pb_watcher.PluginInfo, pid: int | None) -> Registration:
        endpoint = Path(info.endpoint or path)
        problem = ""
        try:
            endpoint = self._endpoint(info, path, pid)
            if self.refusals:
                self.refusals -= 1
                raise PluginRefused(info.name, "refused on purpose, like a kubelet that cannot register a plugin yet")
            if info.type == "DevicePlugin":
                await self.connect(info.name, endpoint)
        except PluginError as e:
            problem = f"failed to dial device plugin: {e.message}"
        versions = tuple(info.supported_versions)
        return Registration(
            "pluginregistration",
            versions,
            info.endpoint,
            info.name,
            endpoint,
            pb.DevicePluginOptions(),
            path,
            problem,
            info.type,
        )


_PACKAGES = ("v1beta1", "deviceplugin")
