"""Release hooks: what the operator does with devices before other pods can get them, such as wiping or resetting.

    releaseHooks:
    - resource: gpu.example.com/gpu          # or "*"
      command: [/usr/bin/wipe, --quick]      # DEVLET_RESOURCE, DEVLET_DEVICE_IDS, DEVLET_POD_UID, DEVLET_CONTAINER
      timeout: 10s
    - resource: "*"
      python: our_hooks:released             # called in a thread, with a Release

Hooks run in this order. If one fails, the devices stay allocated to the pod, and all of its hooks run again later. So
hooks must be idempotent.
"""

import asyncio
import importlib
import inspect
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
import msgspec

from devlet.errors import InvalidInput, Unavailable
from devlet.kit import durations
from devlet.node.devices import hook_program
from devlet.node.devices.releases import Release
from devlet.objects.identifiers import DeviceID
from devlet.objects.names import extended_resource_name

__all__ = ["Release", "ReleaseHooks", "parse"]

AT_ONCE = 8
TIMEOUT = 30.0  # seconds
_ANY = "*"
_MAX_HOOKS = 64
_MAX_WORDS = 256
_MAX_IDS = 64 << 10  # bytes of DEVLET_DEVICE_IDS: the kernel takes 128 KiB
_SHOWN = 500  # characters of what a function raised


class Action(Protocol):
    async def run(self, release: Release, timeout: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Hook:
    resource: str
    action: Action
    timeout: float = TIMEOUT

    def applies_to(self, release: Release) -> bool:
        return self.resource in (_ANY, release.resource)


class ReleaseHooks:
    """A `devlet.node.devices.releases.Hooks`."""

    def __init__(self, hooks: Sequence[Hook] = (), *, at_once: int = AT_ONCE) -> None:
        self._hooks = tuple(hooks)
        self._limiter = anyio.CapacityLimiter(at_once)

    async def run(self, release: Release) -> None:
        """Run all hooks of the resource, one after the other. Raise `Unavailable` if one fails."""
        for hook in self._hooks:
            if hook.applies_to(release):
                async with self._limiter:
                    await self._run(hook, release)

    async def _run(self, hook: Hook, release: Release) -> None:
        try:
            await hook.action.run(release, hook.timeout)
        except Unavailable as e:
            raise Unavailable(f"release hook of {hook.resource}: {e}") from e
        except Exception as e:  # a hook may raise anything
            raise Unavailable(f"release hook of {hook.resource}: {type(e).__name__}") from e


@dataclass(frozen=True, slots=True)
class Command:
    """A program. If the ids exceed one environment variable, it runs several times, with some of them each."""

    argv: tuple[str, ...]

    async def run(self, release: Release, timeout: float) -> None:
        for devices in _portions(release.devices):
            part = msgspec.structs.replace(release, devices=devices)
            environment = {
                "DEVLET_RESOURCE": part.resource,
                "DEVLET_DEVICE_IDS": ",".join(devices),
                "DEVLET_POD_UID": part.pod,
                "DEVLET_CONTAINER": part.container,
            }
            await hook_program.run(self.argv, environment, msgspec.json.encode(part), timeout)


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function, which cannot be stopped. After a timeout the same call is waited for again, not repeated."""

    name: str
    function: Callable[[Release], Any]
    _calls: dict[Release, "Future[BaseException | None]"] = field(default_factory=dict)

    async def run(self, release: Release, timeout: float) -> None:
        call = self._calls.get(release) or self._start(release)
        with anyio.move_on_after(timeout):
            await asyncio.wrap_future(call)
        if not call.done():
            raise Unavailable(f"{self.name} has not returned after {timeout:g} s")
        self._calls.pop(release, None)
        if error := call.result():
            raise Unavailable(f"{self.name} raised {type(error).__name__}: {error}"[:_SHOWN]) from error

    def _start(self, release: Release) -> "Future[BaseException | None]":
        call = self._calls[release] = Future[BaseException | None]()
        call.set_running_or_notify_cancel()  # from here on, a waiter that is cancelled does not cancel the call
        # A daemon thread, because threads of a pool would keep the process from exiting.
        threading.Thread(target=self._call, args=(call, release), name=self.name, daemon=True).start()
        return call

    def _call(self, call: "Future[BaseException | None]", release: Release) -> None:
        try:
            self.function(release)
        except BaseException as e:
            call.set_result(e)
        else:
            call.set_result(None)


def _portions(devices: Sequence[DeviceID]) -> Iterator[tuple[DeviceID, ...]]:
    portion: list[DeviceID] = []
    size = 0
    for device in devices:
        size += len(device.encode()) + 1
        if portion and size > _MAX_IDS:
            yield tuple(portion)
            portion, size = [], len(device.encode()) + 1
        portion.append(device)
    yield tuple(portion)


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    resource: str
    command: list[str] | None = None
    python: str | None = None
    timeout: str | int | float | None = None


def parse(values: Any, *, timeout: float = TIMEOUT, place: str = "releaseHooks") -> ReleaseHooks:
    """Convert plain values, as in YAML. `timeout` is the default of hooks without one. Programs must exist and
    functions must be importable. Raise `InvalidInput`, which names the place."""
    try:
        entries = msgspec.convert(values, list[_Entry])
    except msgspec.ValidationError as e:
        raise InvalidInput(f"{place}: {str(e).replace('`$', f'`{place}')}") from None
    if len(entries) > _MAX_HOOKS:
        raise InvalidInput(f"{place}: {len(entries)} hooks are more than {_MAX_HOOKS}")
    return ReleaseHooks([_hook(entry, f"{place}[{index}]", timeout) for index, entry in enumerate(entries)])


def _hook(entry: _Entry, place: str, timeout: float) -> Hook:
    if entry.resource != _ANY and extended_resource_name(entry.resource):
        raise InvalidInput(
            f'{place}.resource: {entry.resource[:80]!r} is neither a name such as vendor.com/gpu nor "*"'
        )
    if entry.timeout is not None:
        timeout = _timeout(entry.timeout, f"{place}.timeout")
    match entry:
        case _Entry(command=list(words), python=None):
            return Hook(entry.resource, _command(words, f"{place}.command"), timeout)
        case _Entry(command=None, python=str(name)):
            return Hook(entry.resource, _function(name, f"{place}.python"), timeout)
        case _:
            raise InvalidInput(f"{place}: needs either command or python")


def _timeout(value: str | int | float, place: str) -> float:
    try:
        seconds = durations.parse(str(value))
    except ValueError as e:
        raise InvalidInput(f"{place}: {e}") from None
    if seconds < 0.001:
        raise InvalidInput(f"{place}: expected at least 1ms")
    return seconds


def _command(words: Sequence[str], place: str) -> Command:
    if not words or not words[0].startswith("/"):
        raise InvalidInput(f"{place}: must begin with the absolute path of a program")
    if len(words) > _MAX_WORDS or any("\0" in word for word in words):
        raise InvalidInput(f"{place}: has more than {_MAX_WORDS} words, or a zero byte in one")
    if not (os.path.isfile(words[0]) and os.access(words[0], os.X_OK)):
        raise InvalidInput(f"{place}: {words[0]} is not a program that can be run")
    return Command(tuple(words))


def _function(name: str, place: str) -> Function:
    module, colon, path = name.partition(":")
    if not (module and colon and path):
        raise InvalidInput(f"{place}: {name[:80]!r} is not of the form module:function")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as e:  # a module may raise anything
        raise InvalidInput(f"{place}: {name} cannot be imported: {type(e).__name__}: {e}") from e
    if not callable(found) or inspect.iscoroutinefunction(found):
        raise InvalidInput(f"{place}: {name} is not a plain function")
    return Function(name, found)
