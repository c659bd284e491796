"""The PodResources service on `pod-resources/kubelet.sock`: which pod has which devices, for monitoring programs.

gRPC does not reveal which process is at the other end of a unix socket. Clients are distinguished by their user agent,
so that a program that asks too often does not use up the calls of the others.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol, TypeVar

import anyio
import grpc
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus
from google.protobuf.message import DecodeError, Message

from devlet.errors import DevletError, InvalidInput, NotFound, Unavailable
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.kit.metrics import Registry
from devlet.kit.served_socket import ServedSocket
from devlet.kit.token_bucket import TokenBuckets
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.objects.types.container import Container
from devlet.objects.types.pod import Pod
from devlet.plugins.channels import target
from devlet.plugins.devices import Device
from devlet.serve.pod_resources_messages import (
    ClaimDevice,
    Dynamic,
    DynamicResource,
    allocatable,
    pod_resources,
    pod_resources_v1alpha1,
)
from devlet.wire.podresources_v1 import api_pb2 as v1
from devlet.wire.podresources_v1alpha1 import api_pb2 as v1alpha1

__all__ = [
    "SOCKET",
    "ClaimDevice",
    "Devices",
    "DynamicResource",
    "PodResourcesMetrics",
    "PodResourcesServer",
    "Pods",
    "Settings",
]

log = logging.getLogger(__name__)

SOCKET = "kubelet.sock"
DIRECTORY_MODE = 0o750
_METRIC_PREFIX = "kubelet_pod_resources_endpoint"
_METRIC_LABELS = ("server_api_version",)
_METRIC_METHODS = {"List": "list", "GetAllocatableResources": "get_allocatable", "Get": "get"}

_Context = grpc.aio.ServicerContext[bytes, bytes]
_Answer = Callable[[bytes], Message]
M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Settings:
    """Counts, bytes and seconds."""

    rate: float = 100.0  # calls per second, of each client
    burst: int = 10
    max_clients: int = 64  # beyond these, clients share one limit
    max_message: int = 64 << 10  # of a request
    max_requests: int = 256  # at one time
    idle: float = 600.0  # after which a connection without requests is closed
    stop: float = 0.5  # for requests in progress


class Pods(Protocol):
    def active(self) -> Sequence[Pod]: ...

    def find(self, namespace: str, name: str) -> Pod | None:
        """Return the active pod of this name, or None."""
        ...


class Devices(Protocol):
    def container_devices(
        self, pod: PodUID, container: ContainerName
    ) -> Mapping[ResourceName, Mapping[DeviceID, Sequence[int]]]: ...

    def allocatable_devices(self) -> Mapping[ResourceName, Sequence[Device]]: ...


class PodResourcesMetrics:
    """The metrics of the service, under the names that a kubelet uses.

    Calls that the rate limit rejects are not counted. The first version of the API has one number for all its calls."""

    def __init__(self, registry: Registry) -> None:
        self._total = registry.counter(
            f"{_METRIC_PREFIX}_requests_total", "Requests to the PodResources service.", _METRIC_LABELS
        )
        self._requests = {
            method: registry.counter(f"{_METRIC_PREFIX}_requests_{name}", f"Requests for {method}.", _METRIC_LABELS)
            for method, name in _METRIC_METHODS.items()
        }
        self._errors = {
            method: registry.counter(
                f"{_METRIC_PREFIX}_errors_{name}", f"Requests for {method} that failed.", _METRIC_LABELS
            )
            for method, name in _METRIC_METHODS.items()
        }

    def requested(self, version: str, method: str) -> None:
        self._total.add(version)
        if version == "v1":
            self._requests[method].add(version)

    def failed(self, version: str, method: str) -> None:
        if version == "v1":
            self._errors[method].add(version)


def _no_claims(pod: Pod, container: Container) -> tuple[DynamicResource, ...]:
    return ()


class PodResourcesServer:
    """`dynamic` returns the devices that a container has from claims. `socket` serves the path that clients use."""

    def __init__(
        self,
        directory: Path,
        pods: Pods,
        devices: Devices,
        metrics: PodResourcesMetrics,
        clock: Clock,
        *,
        dynamic: Dynamic = _no_claims,
        settings: Settings = Settings(),
    ) -> None:
        self.path = directory / SOCKET
        self._pods = pods
        self._devices = devices
        self._metrics = metrics
        self._lookup = dynamic
        self._settings = settings
        self._limit = TokenBuckets(settings.rate, settings.burst, clock, settings.max_clients)
        self.socket = ServedSocket(self.path, self._serving)

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. Ready when clients can connect."""
        try:
            self.path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            self.path.parent.chmod(DIRECTORY_MODE)
        except OSError as e:
            raise Unavailable(f"cannot listen on {self.path}: {e}") from e
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
                await server.stop(self._settings.stop)

    def _server(self) -> grpc.aio.Server:
        options = [
            ("grpc.max_receive_message_length", self._settings.max_message),
            ("grpc.max_connection_idle_ms", int(self._settings.idle * 1_000)),
        ]
        server = grpc.aio.server(options=options, maximum_concurrent_rpcs=self._settings.max_requests)
        services: dict[str, dict[str, _Answer]] = {
            "v1": {"List": self._list, "GetAllocatableResources": self._allocatable, "Get": self._get},
            "v1alpha1": {"List": self._list_v1alpha1},
        }
        server.add_generic_rpc_handlers([self._service(version, methods) for version, methods in services.items()])
        return server

    def _service(self, version: str, methods: Mapping[str, _Answer]) -> grpc.GenericRpcHandler:
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            name: grpc.unary_unary_rpc_method_handler(self._method(version, name, answer))
            for name, answer in methods.items()
        }
        return grpc.method_handlers_generic_handler(f"{version}.PodResourcesLister", handlers)

    def _method(self, version: str, name: str, answer: _Answer) -> Callable[[bytes, _Context], Awaitable[bytes]]:
        async def call(request: bytes, context: _Context) -> bytes:
            if not self._limit.take(_client(context)):
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
            self._metrics.requested(version, name)
            try:
                return answer(request).SerializeToString()
            except Exception as e:
                self._metrics.failed(version, name)
                await _abort(context, e)

        return call

    def _list(self, request: bytes) -> v1.ListPodResourcesResponse:
        _decoded(v1.ListPodResourcesRequest, request)
        return v1.ListPodResourcesResponse(pod_resources=[self._pod(pod) for pod in self._active()])

    def _get(self, request: bytes) -> v1.GetPodResourcesResponse:
        wanted = _decoded(v1.GetPodResourcesRequest, request)
        pod = self._pods.find(wanted.pod_namespace, wanted.pod_name)
        if pod is None:
            raise NotFound(f"pod {wanted.pod_name} in namespace {wanted.pod_namespace} not found")
        return v1.GetPodResourcesResponse(pod_resources=self._pod(pod))

    def _allocatable(self, request: bytes) -> v1.AllocatableResourcesResponse:
        _decoded(v1.AllocatableResourcesRequest, request)
        return allocatable(self._devices.allocatable_devices())

    def _list_v1alpha1(self, request: bytes) -> v1alpha1.ListPodResourcesResponse:
        _decoded(v1alpha1.ListPodResourcesRequest, request)
        held = self._devices.container_devices
        shown = [pod_resources_v1alpha1(pod, held) for pod in self._active()]
        return v1alpha1.ListPodResourcesResponse(pod_resources=shown)

    def _active(self) -> list[Pod]:
        return sorted(self._pods.active(), key=lambda pod: (pod.metadata.namespace, pod.name, pod.uid))

    def _pod(self, pod: Pod) -> v1.PodResources:
        return pod_resources(pod, self._devices.container_devices, self._dynamic)

    def _dynamic(self, pod: Pod, container: Container) -> Sequence[DynamicResource]:
        """Return the devices from claims; none if they cannot be determined, so that the rest of the answer is sent."""
        try:
            return self._lookup(pod, container)
        except DevletError as e:
            where = f"{pod.metadata.namespace}/{pod.name}"
            log.warning("claims not listed", extra=facts(pod=where, containerName=container.name, err=e))
            return ()


def _client(context: _Context) -> str:
    """Return what identifies a client: its address, if it has one, and its user agent."""
    agent = next((value for key, value in context.invocation_metadata() or () if key == "user-agent"), "")
    return f"{context.peer()} {agent if isinstance(agent, str) else ''}"[:512]


def _decoded(kind: type[M], blob: bytes) -> M:
    try:
        return kind.FromString(blob)
    except DecodeError as e:
        raise InvalidInput(f"the request cannot be decoded: {e}") from e


async def _abort(context: _Context, error: Exception) -> NoReturn:
    match error:
        case NotFound():
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))  # as a kubelet answers
        case InvalidInput():
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        case Unavailable():
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        case DevletError():
            await context.abort(grpc.StatusCode.INTERNAL, str(error))
        case _:
            raise error
