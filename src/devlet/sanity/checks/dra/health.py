"""The health of devices, if a driver reports it."""

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
    """Return the health service of the driver. Raises CannotTell if it offers none."""
    offered = [each for each in rig.greeting.versions if each in HEALTH_SERVICES]
    if not offered:
        raise CannotTell("the driver does not report the health of its devices")
    return offered[0]


def _stream(rig: DraRig) -> aclosing[AsyncGenerator[pb.NodeWatchResourcesResponse, None]]:
    return aclosing(rig.client.health(health_service(rig)))


async def first_list(
    rig: DraRig, lists: AsyncIterator[pb.NodeWatchResourcesResponse] | None = None
) -> pb.NodeWatchResourcesResponse:
    """Return the first list of this stream, or of a new one. Raises CannotTell if none is sent."""
    if lists is None:
        async with _stream(rig) as lists:
            return await first_list(rig, lists)
    patience = rig.kubelet.patience
    with anyio.move_on_after(patience.limit(_METHOD, rig.settings.answer)):
        found = await anext(lists)
        patience.answered(_METHOD)
        return found
    patience.silent(_METHOD)
    raise CannotTell("the health stream sends nothing: see DRA-HEALTH-1")


@checks.add(
    "DRA-HEALTH-1",
    "The health of devices is sent immediately",
    rule="a kubelet that connects knows nothing yet, so each stream begins with the whole list",
    how=_HOW,
)
async def at_once(rig: DraRig) -> Outcome:
    async with _stream(rig) as messages:
        with anyio.move_on_after(rig.settings.answer):
            await anext(messages)
            return Passed()
    rig.kubelet.patience.silent(_METHOD)
    return Failed(f"no list was sent within {rig.settings.answer:g} s")


@checks.add(
    "DRA-HEALTH-2",
    "Health is reported only for published devices",
    rule="the kubelet looks devices up by pool and device name, and ignores unknown ones",
    how=f"{_HOW}; compare with its slices",
)
async def published(rig: DraRig) -> Outcome:
    known = {(each.pool, each.name) for each in rig.offers()}
    for each in (await first_list(rig)).devices:
        if (each.device.pool_name, each.device.device_name) not in known:
            name = f"{each.device.pool_name or '(no pool)'}/{each.device.device_name or '(no device)'}"
            return Failed(f"health was reported for {name}, which is not in any slice of the driver")
    return Passed()


@checks.add(
    "DRA-HEALTH-3",
    "Health is reported for all published devices",
    rule="the health of a device that is missing from a list becomes unknown after a while",
    how=f"{_HOW}; compare with its slices",
)
async def whole(rig: DraRig) -> Outcome:
    reported = {(each.device.pool_name, each.device.device_name) for each in (await first_list(rig)).devices}
    missing = sorted(each.name for each in rig.offers() if (each.pool, each.name) not in reported)
    return Warned(f"no health is reported for {', '.join(missing[:5])}") if missing else Passed()


@checks.add(
    "DRA-HEALTH-4",
    "Each device is reported once",
    rule="if a list has two entries for a device, only the last one counts",
    how=_HOW,
)
async def unique(rig: DraRig) -> Outcome:
    counts = Counter((each.device.pool_name, each.device.device_name) for each in (await first_list(rig)).devices)
    twice = sorted(f"{pool}/{device}" for (pool, device), count in counts.items() if count > 1)
    return Failed(f"more than once in one list: {', '.join(twice[:5])}") if twice else Passed()


@checks.add(
    "DRA-HEALTH-5",
    "Health values are valid",
    rule="health is UNKNOWN, HEALTHY or UNHEALTHY; a timeout is not negative; times are seconds since 1970",
    how=_HOW,
)
async def values(rig: DraRig) -> Outcome:
    for each in (await first_list(rig)).devices:
        name = each.device.device_name
        if each.health not in (pb.UNKNOWN, pb.HEALTHY, pb.UNHEALTHY):
            return Failed(f"{name} has health {each.health}, which is not defined")
        if each.health_check_timeout_seconds < 0:
            return Failed(f"{name} has a negative timeout of {each.health_check_timeout_seconds} s")
        if each.last_updated_time > time.time() + _YEAR:
            return Failed(f"{name} has last_updated_time {each.last_updated_time}, which is not in seconds")
    return Passed()


@checks.add(
    "DRA-HEALTH-6",
    "Health messages are short",
    rule="the kubelet truncates messages to 1024 bytes",
    how=_HOW,
)
async def messages(rig: DraRig) -> Outcome:
    for each in (await first_list(rig)).devices:
        if (size := len(each.message.encode())) > MESSAGE_MAX:
            return Warned(f"the message of {each.device.device_name} has {size} bytes, of which {MESSAGE_MAX} are kept")
    return Passed()


@checks.add(
    "DRA-HEALTH-7",
    "Health is repeated before it expires",
    rule="health that is not repeated within health_check_timeout_seconds (by default 30) becomes unknown",
    how=f"{_HOW} and wait for the second message",
)
async def repeats(rig: DraRig) -> Outcome:
    async with _stream(rig) as lists:
        first = await first_list(rig, lists)
        timeouts = [each.health_check_timeout_seconds or DEFAULT_TIMEOUT for each in first.devices]
        shortest = min(timeouts, default=DEFAULT_TIMEOUT)
        if shortest > rig.settings.health:
            raise CannotTell(f"the health is valid for {shortest} s, which is too long to wait")
        with anyio.move_on_after(shortest):
            await anext(lists)
            return Passed()
    return Failed(f"the health was not repeated within the {shortest} s for which it is valid")


@checks.add(
    "DRA-HEALTH-8",
    "Several concurrent streams all get the list",
    rule="a restarted kubelet opens a stream before the old one has ended",
    how=f"{_HOW} several times concurrently",
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
    return Passed() if len(heard) == 3 else Failed(f"only {len(heard)} of three concurrent streams got a list")


@checks.add(
    "DRA-HEALTH-9",
    "Closed streams release their resources",
    rule="a driver outlives many kubelets; whatever it keeps for each closed stream adds up until it fails",
    source=sources.PRACTICE,
    how=f"{_HOW} and close it, many times; compare /proc/PID/fd, task and statm",
    fresh=True,
)
async def closed(rig: DraRig) -> Outcome:
    return await leaks.uses_up(rig, partial(_opened, rig), 70, "closed streams", memory=_PER_STREAM)


_PER_STREAM = 20 << 10  # bytes


async def _opened(rig: DraRig, times: int) -> None:
    for _ in range(times):
        with suppress(PluginError):
            await first_list(rig)


@checks.add(
    "DRA-HEALTH-10",
    "A health list is at most 4 MiB",
    rule="gRPC receives at most 4 MiB by default: a longer list breaks every stream",
    source=sources.GRPC,
    how=f"{_HOW}; add up the bytes of the first message",
)
async def size(rig: DraRig) -> Outcome:
    found = await first_list(rig)
    return wire.fits(found, f"the health of {len(found.devices)} devices")


@checks.add(
    "DRA-HEALTH-11",
    "The health stream stays open",
    rule="when the stream ends, the kubelet forgets the health of all devices, and reconnects 5 seconds later",
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
            return Failed(f"the health stream ended after its first list: {e.message}")
    return Passed()
