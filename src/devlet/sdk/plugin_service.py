"""The v1beta1 DevicePlugin service of one resource, which converts between messages and the plugin's values.

The service checks requests, so that a plugin is only asked about devices that it listed. Between two lists a node may
still ask for a preference among devices of which one was just removed. Such a request is not refused, because a refusal
would fail the pod.
"""

from collections.abc import AsyncGenerator, Collection, Iterable, Sequence
from contextlib import aclosing
from typing import Final, Protocol, TypeVar

from google.protobuf.message import DecodeError, Message
from msgspec import Struct

from devlet.errors import InvalidInput, NotFound
from devlet.runtime.cdi import names
from devlet.sdk.board import Board
from devlet.sdk.device_lists import DeviceList
from devlet.sdk.mistakes import asked, env_problems, type_problem
from devlet.sdk.server import Context, Methods
from devlet.sdk.values import DeviceNode, Grant, Mount
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

__all__ = ["VERSION", "Answers", "Optional", "PluginService"]

VERSION: Final = "v1beta1"

_SERVICE = "/v1beta1.DevicePlugin/"
_SHOWN = 10  # ids in a text

M = TypeVar("M", bound=Message)


class Optional(Struct, frozen=True, gc=False):
    """The optional calls that a plugin wants."""

    pre_start: bool = False
    preferred_allocation: bool = False

    def message(self) -> pb.DevicePluginOptions:
        return pb.DevicePluginOptions(
            pre_start_required=self.pre_start, get_preferred_allocation_available=self.preferred_allocation
        )


class Answers(Protocol):
    """The calls that a plugin answers, each for one container."""

    resource: str

    async def allocate(self, ids: Sequence[str]) -> Grant: ...

    async def prefer(self, available: Sequence[str], must_include: Sequence[str], size: int) -> Sequence[str]: ...

    async def pre_start(self, ids: Sequence[str]) -> None: ...


class PluginService:
    """The service while one socket is served. `board` must have a list before the service starts."""

    def __init__(self, plugin: Answers, board: Board[DeviceList], optional: Optional = Optional()) -> None:
        self._plugin = plugin
        self._board = board
        self._optional = optional

    @property
    def methods(self) -> Methods:
        unary = {
            f"{_SERVICE}GetDevicePluginOptions": self._get_options,
            f"{_SERVICE}GetPreferredAllocation": self._get_preferred,
            f"{_SERVICE}Allocate": self._allocate,
            f"{_SERVICE}PreStartContainer": self._pre_start,
        }
        return Methods(unary, {f"{_SERVICE}ListAndWatch": self._list_and_watch})

    async def _get_options(self, blob: bytes, context: Context) -> bytes:
        return self._optional.message().SerializeToString()

    async def _list_and_watch(self, blob: bytes, context: Context) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._board.values()) as lists:
            async for each in lists:
                yield each.message

    async def _get_preferred(self, blob: bytes, context: Context) -> bytes:
        request = _decoded(pb.PreferredAllocationRequest, blob)
        answers = [await self._preferred(each) for each in request.container_requests]
        return pb.PreferredAllocationResponse(container_responses=answers).SerializeToString()

    async def _preferred(
        self, request: pb.ContainerPreferredAllocationRequest
    ) -> pb.ContainerPreferredAllocationResponse:
        must, size = tuple(request.must_include_deviceIDs), request.allocation_size
        self._check_ids(must, at_least=0)
        known = self._ids()
        available = tuple(id for id in dict.fromkeys(request.available_deviceIDs) if id in known)
        if problem := _size_problem(available, must, size):
            raise InvalidInput(f"{self._plugin.resource}: {problem}")
        chosen = _ids_of(await asked(self._plugin.prefer, available, must, size))
        if problem := _choice_problem(chosen, available, must, size):
            raise ValueError(f"prefer() of {self._plugin.resource} gave {_listed(chosen)}: {problem}")
        return pb.ContainerPreferredAllocationResponse(deviceIDs=chosen)

    async def _allocate(self, blob: bytes, context: Context) -> bytes:
        requests = [tuple(each.devices_ids) for each in _decoded(pb.AllocateRequest, blob).container_requests]
        for ids in requests:  # all of them before the plugin does anything
            self._check_ids(ids)
        answers = [_granted(await asked(self._plugin.allocate, ids)) for ids in requests]
        return pb.AllocateResponse(container_responses=answers).SerializeToString(deterministic=True)

    async def _pre_start(self, blob: bytes, context: Context) -> bytes:
        ids = tuple(_decoded(pb.PreStartContainerRequest, blob).devices_ids)
        self._check_ids(ids)
        await asked(self._plugin.pre_start, ids)
        return pb.PreStartContainerResponse().SerializeToString()

    def _ids(self) -> frozenset[str]:
        return self._board.value.ids if self._board.value is not None else frozenset()

    def _check_ids(self, ids: Sequence[str], at_least: int = 1) -> None:
        if len(ids) < at_least:
            raise InvalidInput(f"{self._plugin.resource}: the request names no device")
        if len(set(ids)) < len(ids):
            raise InvalidInput(f"{self._plugin.resource}: the request names a device twice: {_listed(ids)}")
        if unknown := [id for id in ids if id not in self._ids()]:
            raise NotFound(f"{self._plugin.resource} has no device {_listed(unknown)}: it is not in the newest list")


def _decoded(kind: type[M], blob: bytes) -> M:
    try:
        return kind.FromString(blob)
    except DecodeError as e:
        raise InvalidInput(f"the request is not a valid {kind.__name__}: {e}") from e


def _ids_of(given: object) -> tuple[str, ...]:
    ids = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (None,)
    if not all(isinstance(id, str) for id in ids):
        raise TypeError(f"prefer() gave {given!r}, expected a list of ids")
    return ids


def _size_problem(available: Collection[str], must: Collection[str], size: int) -> str:
    if size < max(1, len(must)):
        return f"a preference for {size} devices, of which {len(must)} are given, makes no sense"
    if size > len(available):
        return f"{size} devices cannot be chosen, {len(available)} are available"
    if missing := set(must).difference(available):
        return f"{_listed(sorted(missing))} must be among the chosen devices and is not available"
    return ""


def _choice_problem(chosen: Collection[str], available: Collection[str], must: Collection[str], size: int) -> str:
    """Return what is wrong with a preference. It may be empty, or have fewer devices than asked for."""
    if len(chosen) > size or len(set(chosen)) < len(chosen):
        return f"expected at most {size} different ones"
    if strange := set(chosen).difference(available):
        return f"{_listed(sorted(strange))} is not available"
    if chosen and (missing := set(must).difference(chosen)):
        return f"{_listed(sorted(missing))} must be among them"
    return ""


def _granted(grant: Grant) -> pb.ContainerAllocateResponse:
    """Convert a grant. A mistake in it is reported here, which is clearer than an error of the container runtime."""
    if not isinstance(grant, Grant):
        raise TypeError(f"allocate() gave {grant!r}, expected a Grant")
    if problem := type_problem(grant, grant.__struct_fields__):
        raise TypeError(f"allocate() gave a Grant in which something is wrong: {problem}")
    if problems := env_problems(grant.env):
        raise ValueError(f"allocate() gave a Grant in which something is wrong: {problems[0]}")
    for name in grant.cdi_devices:
        names.parse(name)
    return pb.ContainerAllocateResponse(
        envs=grant.env,
        mounts=[_mount(each) for each in grant.mounts],
        devices=[_device(each) for each in grant.devices],
        annotations=grant.annotations,
        cdi_devices=[pb.CDIDevice(name=name) for name in grant.cdi_devices],
    )


def _device(given: DeviceNode | str) -> pb.DeviceSpec:
    node = DeviceNode(given) if isinstance(given, str) else given
    if not node.permissions or set(node.permissions) - set("rwm"):
        raise ValueError(f"the permissions of {node.path} are {node.permissions!r}, expected some of r, w and m")
    path = _absolute(node.path)
    return pb.DeviceSpec(
        host_path=path, container_path=_absolute(node.container_path or path), permissions=node.permissions
    )


def _mount(mount: Mount) -> pb.Mount:
    path = _absolute(mount.path)
    return pb.Mount(host_path=path, container_path=_absolute(mount.container_path or path), read_only=mount.read_only)


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is not an absolute path")
    return path


def _listed(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:_SHOWN])
    return f"{shown} and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else shown or "none"
