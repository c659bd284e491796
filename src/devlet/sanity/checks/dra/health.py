"""The health of devices, if a driver offers to tell it."""

import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from functools import partial

import anyio

from devlet.errors import PluginError
from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed, Warned
from devlet.sanity.checks import leaks, wire
from devlet.sanity.dra_client import HEALTH_SERVICES
from devlet.sanity.rig_dra import DraRig
from devlet.wire.dra_health import api_pb2 as pb

checks = Checks[DraRig](sources.KEP_4680)

DEFAULT_TIMEOUT = 30  # seconds, of the kubelet
MESSAGE_MAX = 1024  # bytes, of the kubelet
_METHOD = "NodeWatchResources"
_HOW = "call NodeWatchResources of its health service"
_YEAR = 365 * 24 * 3600


def health_service(rig: DraRig) -> str:
    """CannotTell if it offers none."""
    offered = [each for each in rig.greeting.versions if each in HEALTH_SERVICES]
    if not offered:
        raise CannotTell("it does not offer to tell the health of its devices")
    return offered[0]


def _stream(rig: DraRig) -> aclosing[AsyncGenerator[pb.NodeWatchResourcesResponse, None]]:
    return aclosing(rig.client.health(health_service(rig)))


async def first_list(
    rig: DraRig, lists: AsyncIterator[pb.NodeWatchResourcesResponse] | None = None
) -> pb.NodeWatchResourcesResponse:
    """Of this stream, or of a new one. CannotTell if nothing comes."""
    if lists is None:
        async with _stream(rig) as lists:
            return await first_list(rig, lists)
    patience = rig.kubelet.patience
    with anyio.move_on_after(patience.limit(_METHOD, rig.settings.answer)):
        found = await anext(lists)
        patience.answered(_METHOD)
        return found
    patience.silent(_METHOD)
    raise CannotTell("it sends nothing: see DRA-HEALTH-1")


@checks.add(
    "DRA-HEALTH-1",
    "It sends the health of its devices at once",
    rule="a kubelet that connects knows nothing: each stream begins with the whole list",
    how=_HOW,
)
async def at_once(rig: DraRig) -> Outcome:
    async with _stream(rig) as messages:
        with anyio.move_on_after(rig.settings.answer):
            await anext(messages)
            return Passed()
    rig.kubelet.patience.silent(_METHOD)
    return Failed(f"{rig.settings.answer:g} s after the call nothing was sent")


@checks.add(
    "DRA-HEALTH-2",
    "It tells of devices that it has published",
    rule="the kubelet looks devices up by pool and device: names that are empty or unknown are of nobody",
    how=f"{_HOW}; compare with its slices",
)
async def published(rig: DraRig) -> Outcome:
    known = {(each.pool, each.name) for each in rig.offers()}
    for each in (await first_list(rig)).devices:
        if (each.device.pool_name, each.device.device_name) not in known:
            name = f"{each.device.pool_name or '(no pool)'}/{each.device.device_name or '(no device)'}"
            return Failed(f"it tells of {name}, which is in none of its slices")
    return Passed()


@checks.add(
    "DRA-HEALTH-3",
    "Each list is whole",
    rule="devices that are missing from a list become unknown after a while",
    how=f"{_HOW}; compare with its slices",
)
async def whole(rig: DraRig) -> Outcome:
    told = {(each.device.pool_name, each.device.device_name) for each in (await first_list(rig)).devices}
    missing = sorted(each.name for each in rig.offers() if (each.pool, each.name) not in told)
    return Warned(f"published, and without health: {', '.join(missing[:5])}") if missing else Passed()


@checks.add(
    "DRA-HEALTH-4",
    "No device is told of twice",
    rule="of two reports about one device in one list the last one counts, whatever was meant",
    how=_HOW,
)
async def unique(rig: DraRig) -> Outcome:
    told = Counter((each.device.pool_name, each.device.device_name) for each in (await first_list(rig)).devices)
    twice = sorted(f"{pool}/{device}" for (pool, device), count in told.items() if count > 1)
    return Failed(f"more than once in one list: {', '.join(twice[:5])}") if twice else Passed()


@checks.add(
    "DRA-HEALTH-5",
    "Its values make sense",
    rule="health is UNKNOWN, HEALTHY or UNHEALTHY; a timeout is not negative; times are seconds since 1970",
    how=_HOW,
)
async def values(rig: DraRig) -> Outcome:
    for each in (await first_list(rig)).devices:
        name = each.device.device_name
        if each.health not in (pb.UNKNOWN, pb.HEALTHY, pb.UNHEALTHY):
            return Failed(f"{name} has health {each.health}, which nobody knows")
        if each.health_check_timeout_seconds < 0:
            return Failed(f"{name} has a timeout of {each.health_check_timeout_seconds} s")
        if each.last_updated_time > time.time() + _YEAR:
            return Failed(f"{name} was updated at {each.last_updated_time}: these are no seconds")
    return Passed()


@checks.add(
    "DRA-HEALTH-6",
    "Its messages are short",
    rule="the kubelet keeps 1024 bytes of a message",
    how=_HOW,
)
async def messages(rig: DraRig) -> Outcome:
    for each in (await first_list(rig)).devices:
        if (size := len(each.message.encode())) > MESSAGE_MAX:
            return Warned(f"{each.device.device_name} has a message of {size} bytes, of which {MESSAGE_MAX} are kept")
    return Passed()


@checks.add(
    "DRA-HEALTH-7",
    "It repeats what it said before that expires",
    rule="what was not heard again within health_check_timeout_seconds (30 without) becomes unknown",
    how=f"{_HOW} and wait for the second message",
)
async def repeats(rig: DraRig) -> Outcome:
    async with _stream(rig) as lists:
        first = await first_list(rig, lists)
        timeouts = [each.health_check_timeout_seconds or DEFAULT_TIMEOUT for each in first.devices]
        shortest = min(timeouts, default=DEFAULT_TIMEOUT)
        if shortest > rig.settings.health:
            raise CannotTell(f"what it says holds for {shortest} s, which is too long to wait for")
        with anyio.move_on_after(shortest):
            await anext(lists)
            return Passed()
    return Failed(f"it was not repeated within the {shortest} s for which it holds")


@checks.add(
    "DRA-HEALTH-8",
    "Each of several streams gets the list",
    rule="a kubelet that comes back opens a stream before the old one has ended",
    how=f"{_HOW} several times at the same time",
)
async def several(rig: DraRig) -> Outcome:
    heard: list[int] = []

    async def listen(number: int) -> None:
        with anyio.move_on_after(rig.kubelet.patience.limit(_METHOD, rig.settings.answer)):
            async with _stream(rig) as lists:
                await anext(lists)
                heard.append(number)
                if len(heard) == 3:
                    complete.set()
                await complete.wait()

    complete = anyio.Event()
    health_service(rig)
    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(listen, number)
    return Passed() if len(heard) == 3 else Failed(f"of three streams at the same time {len(heard)} got a list")


@checks.add(
    "DRA-HEALTH-9",
    "Streams that were closed leave nothing behind",
    rule="kubelets come and go: what is kept for a closed stream is lost",
    source=sources.PRACTICE,
    how=f"{_HOW} and close it, many times; look at /proc/PID/fd, task and statm",
    fresh=True,
)
async def closed(rig: DraRig) -> Outcome:
    return await leaks.uses_up(rig, partial(_opened, rig), 70, "streams that were closed", memory=_PER_STREAM)


_PER_STREAM = 20 << 10  # bytes


async def _opened(rig: DraRig, times: int) -> None:
    for _ in range(times):
        with suppress(PluginError):
            await first_list(rig)


@checks.add(
    "DRA-HEALTH-10",
    "A list has at most 4 MiB",
    rule="gRPC receives at most 4 MiB by default: with a longer list the stream breaks, each time that it is opened",
    source=sources.GRPC,
    how=f"{_HOW}; add up the bytes of the first message",
)
async def size(rig: DraRig) -> Outcome:
    found = await first_list(rig)
    return wire.fits(found, f"the health of {len(found.devices)} devices")


@checks.add(
    "DRA-HEALTH-11",
    "It keeps the stream open",
    rule="when the stream ends the kubelet drops all that it knows of the driver's devices, and comes again 5 s later",
    how=f"{_HOW}; it must not end",
)
async def stays_open(rig: DraRig) -> Outcome:
    async with _stream(rig) as lists:
        await first_list(rig, lists)
        try:
            with anyio.move_on_after(rig.settings.quiet):
                async for _ in lists:
                    pass
        except PluginError as e:
            return Failed(f"after its first list {e.message}")
    return Passed()
