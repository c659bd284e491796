"""The Registration service on `device-plugins/kubelet.sock`, where device plugins register.

A request names a resource and the socket in the same directory that serves it. It is answered only after that plugin
has been connected, so the plugin must already be serving. Plugins of the oldest APIs use an old name of the service.
"""

import json
import logging
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import anyio
import grpc
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus
from google.protobuf.message import DecodeError

from devlet.errors import DevletError, InUse, InvalidInput, PluginError, PluginUnavailable, Unavailable
from devlet.kit import socket_paths
from devlet.kit.clock import SystemClock
from devlet.kit.facts import facts
from devlet.kit.served_socket import ServedSocket
from devlet.objects.identifiers import ResourceName
from devlet.plugins.channels import listener_pid, target
from devlet.plugins.device_plugin import Api, Offer
from devlet.plugins.device_plugin_handler import TYPE, check_resource_name
from devlet.plugins.refusals import Refusals
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

__all__ = ["SOCKET", "RegistrationServer", "Settings", "remove_sockets"]

log = logging.getLogger(__name__)

SOCKET = "kubelet.sock"

_SERVICES = {"v1beta1.Registration": (Api.V1BETA1,), "deviceplugin.Registration": (Api.V1ALPHA2, Api.V1ALPHA1)}
_SHOWN = 300  # characters of a wrong value
_TEXT = 2_000  # bytes of an error: encoding may triple its size, and headers are limited to 8 KiB
_Context = grpc.aio.ServicerContext[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Settings:
    """Bytes, counts and seconds."""

    max_message: int = 64 << 10  # of a request; a real one has a few hundred bytes
    max_requests: int = 256  # at one time; more are answered with RESOURCE_EXHAUSTED
    max_streams: int = 64  # per connection
    idle: float = 60.0  # after which a connection without request is closed


class RegistrationServer:
    """`register` connects the plugin; its errors are the answer to the plugin. `count` is called with the name in every
    request before it is checked, so it may be any string. Plugins that were refused are added to `refusals`. `socket`
    serves the path at which plugins register."""

    def __init__(
        self,
        directory: Path,
        register: Callable[[Offer], Awaitable[None]],
        *,
        count: Callable[[str], None] = lambda resource: None,
        settings: Settings = Settings(),
        refusals: Refusals | None = None,
    ) -> None:
        self.path = directory / SOCKET
        if not directory.is_absolute():
            raise InvalidInput(f"bad socketPath, must be an absolute path: {self.path}")
        if socket_paths.length(self.path) > socket_paths.MAX_BYTES:
            raise InvalidInput(f"{self.path}: a socket path has at most {socket_paths.MAX_BYTES} bytes")
        self._directory = directory
        self._register = register
        self._count = count
        self._settings = settings
        self._refusals = refusals or Refusals(SystemClock())
        self.socket = ServedSocket(self.path, self._serving)

    def health(self) -> str | None:
        """Return the problem of the service, or None if it has none or does not run."""
        problem = self.socket.problem()
        return f"device registration error: {problem}; plugins cannot register" if problem else None

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. Requests under way are then aborted. Ready when plugins can register. Raise `InUse` if
        another process serves the socket."""
        try:
            self._directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        except OSError as e:
            raise Unavailable(f"cannot listen on {self.path}: {e}") from e
        _refuse_if_served(self.path)
        await self.socket.run(task_status=task_status)

    @asynccontextmanager
    async def _serving(self, path: Path) -> AsyncIterator[None]:
        server = self._server()
        try:
            server.add_insecure_port(target(path))
            await server.start()
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await server.stop(None)

    def _server(self) -> grpc.aio.Server:
        options = [
            ("grpc.max_receive_message_length", self._settings.max_message),
            ("grpc.max_concurrent_streams", self._settings.max_streams),
            ("grpc.max_connection_idle_ms", int(self._settings.idle * 1_000)),
        ]
        server = grpc.aio.server(options=options, maximum_concurrent_rpcs=self._settings.max_requests)
        server.add_generic_rpc_handlers([self._service(name, apis) for name, apis in _SERVICES.items()])
        return server

    def _service(self, name: str, apis: Sequence[Api]) -> grpc.GenericRpcHandler:
        async def register(blob: bytes, context: _Context) -> bytes:
            return await self._answer(blob, apis, context)

        return grpc.method_handlers_generic_handler(name, {"Register": grpc.unary_unary_rpc_method_handler(register)})

    async def _answer(self, blob: bytes, apis: Sequence[Api], context: _Context) -> bytes:
        request = pb.RegisterRequest()
        try:
            _decode(blob, request)
            self._count(request.resource_name)
            await self._register(self._offer(request, apis))
        except DevletError as e:
            self._refused(request, e)
            await _abort(context, e)
        self._refusals.remove(TYPE, request.resource_name)
        return pb.Empty().SerializeToString()

    def _refused(self, request: pb.RegisterRequest, error: DevletError) -> None:
        """Record and log a refusal. Plugins retry as long as they run, so only a new refusal is a warning."""
        socket = self._directory / request.endpoint if _is_name(request.endpoint) else None
        is_new = self._refusals.add(TYPE, request.resource_name, socket, str(error))
        about = facts(type=TYPE, plugin=request.resource_name[:_SHOWN], endpoint=request.endpoint[:_SHOWN], err=error)
        log.log(logging.WARNING if is_new else logging.DEBUG, "plugin not registered", extra=about)

    def _offer(self, request: pb.RegisterRequest, apis: Sequence[Api]) -> Offer:
        api = _api(request.version, apis)
        check_resource_name(request.resource_name)
        return Offer(ResourceName(request.resource_name), self._socket(request.endpoint), api)

    def _socket(self, endpoint: str) -> Path:
        """Return the socket of the plugin. It is always in the directory, and never our own."""
        path = self._directory / endpoint
        if not _is_name(endpoint):
            raise InvalidInput(f"the endpoint {_quoted(endpoint)} is not the name of a socket in {self._directory}")
        if socket_paths.length(path) > socket_paths.MAX_BYTES:
            limit = f"{path} would have more than {socket_paths.MAX_BYTES} bytes"
            raise InvalidInput(f"the endpoint {_quoted(endpoint)} is too long for a socket: {limit}")
        return path


def _decode(blob: bytes, request: pb.RegisterRequest) -> None:
    try:
        request.ParseFromString(blob)
    except DecodeError as e:
        raise InvalidInput(f"the request cannot be decoded: {e}") from e


def _is_name(endpoint: str) -> bool:
    """Return True if the endpoint is the name of a file, other than our own socket."""
    return bool(endpoint) and "/" not in endpoint and "\0" not in endpoint and endpoint not in (".", "..", SOCKET)


def remove_sockets(directory: Path, keep: Collection[str] = ()) -> int:
    """Delete the sockets that an earlier run left in the directory and return their number. For plugins, this is the
    signal to register again. Files whose names are in `keep` stay, even if they are sockets. While another process
    serves registrations there, raise `InUse` and delete nothing."""
    _refuse_if_served(directory / SOCKET)
    stale = [path for path in _entries(directory) if path.name not in keep and _is_socket(path)]
    problems = []
    for path in stale:
        try:
            path.unlink(missing_ok=True)
        except OSError as e:
            problems.append(f"{path}: {e.strerror}")
    if problems:
        raise Unavailable(f"cannot remove old sockets: {', '.join(problems)}")
    return len(stale)


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except FileNotFoundError:
        return []


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:  # removed, or a dangling link
        return False


def _refuse_if_served(path: Path) -> None:
    """Raise `InUse` if the socket is served: two managers of the same devices would allocate them twice."""
    try:
        pid = listener_pid(path)
    except OSError:
        return
    raise InUse(f"{path} is served by process {pid or 'in another PID namespace'}: stop it first (a kubelet?)")


def _api(version: str, apis: Sequence[Api]) -> Api:
    if version in apis:
        return Api(version)
    supported = " ".join(f'"{api}"' for api in apis)
    known = f"Supported version is [{supported}]"
    raise _UnsupportedVersion(f"requested API version {_quoted(version)} is not supported by kubelet. {known}")


class _UnsupportedVersion(InvalidInput):
    """A server of another version may accept the request."""


def _status(error: DevletError) -> grpc.StatusCode:
    match error:
        case _UnsupportedVersion():
            return grpc.StatusCode.FAILED_PRECONDITION
        case InvalidInput():
            return grpc.StatusCode.INVALID_ARGUMENT
        case PluginUnavailable() | Unavailable():
            return grpc.StatusCode.UNAVAILABLE
        case _:
            return grpc.StatusCode.FAILED_PRECONDITION


async def _abort(context: _Context, error: DevletError) -> NoReturn:
    text = error.message if isinstance(error, PluginError) else str(error)
    await context.abort(_status(error), text.encode()[:_TEXT].decode(errors="ignore"))


def _quoted(text: str) -> str:
    return json.dumps(text[:_SHOWN], ensure_ascii=False)
