"""A driver that is asked to end: SIGTERM, as the runtime sends it to a pod that is deleted or updated."""

from contextlib import suppress

import anyio

from devlet.errors import PluginError
from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed, Warned
from devlet.sanity.checks.dra.answers import ids_of
from devlet.sanity.checks.dra.health import health_service
from devlet.sanity.checks.dra.slices import settled
from devlet.sanity.checks.moments import duration
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig](sources.PLUGIN_MANAGER)

_HOW = "send it SIGTERM"


async def _terminated(rig: DraRig) -> bool:
    return await rig.terminate(rig.settings.stop)


async def _started_again(rig: DraRig) -> bool:
    before = rig.kubelet.count
    await rig.start_again()
    return await rig.ready_again(before)


@checks.add(
    "DRA-STOP-1",
    "It ends when it is asked to",
    rule="a pod that is deleted gets SIGTERM, and SIGKILL when its grace period of 30 seconds is over",
    source=sources.POD_LIFE,
    how=f"{_HOW}; it should end in less than 30 seconds",
    fresh=True,
)
async def ends(rig: DraRig) -> Outcome:
    return Passed() if await _terminated(rig) else Failed(f"it still runs {rig.settings.stop:g} s after SIGTERM")


@checks.add(
    "DRA-STOP-2",
    "It takes its sockets with it",
    rule="a socket without listener stays registered: the kubelet dials it again and again",
    how=f"{_HOW}; look into plugins_registry and its own directory",
    fresh=True,
)
async def removes_sockets(rig: DraRig) -> Outcome:
    await _terminated(rig)
    left = [str(path) for path in rig.leftovers()]
    return Failed(f"left over after SIGTERM: {', '.join(left)}") if left else Passed()


@checks.add(
    "DRA-STOP-3",
    "It ends though streams are open",
    rule="the kubelet never closes a health stream: a driver that waits for its streams to end waits for ever",
    source=sources.DRA_MANAGER,
    how=f"call NodeWatchResources and keep it open; {_HOW}",
    fresh=True,
)
async def ends_with_streams(rig: DraRig) -> Outcome:
    service, client, opened = health_service(rig), rig.client, anyio.Event()

    async def listen() -> None:
        with suppress(PluginError):
            async for _ in client.health(service):
                opened.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        with anyio.move_on_after(rig.settings.answer):
            await opened.wait()
        ended = await _terminated(rig)
        tasks.cancel_scope.cancel()
    return Passed() if ended else Failed(f"with an open stream it still runs {rig.settings.stop:g} s after SIGTERM")


@checks.add(
    "DRA-STOP-4",
    "It can be started again after it was stopped",
    rule="an update is a stop and a start: the new one is registered as the old one was",
    how=f"{_HOW}, start it again and register it",
    fresh=True,
)
async def starts_again(rig: DraRig) -> Outcome:
    await _terminated(rig)
    if not await _started_again(rig):
        return Failed(f"it was stopped and started again, and was not registered within {rig.settings.wait:g} s")
    await rig.client.prepare()
    return Passed()


@checks.add(
    "DRA-STOP-5",
    "What it prepared stays when it ends",
    rule="pods go on while their driver is updated, and their containers may be restarted meanwhile",
    source=sources.KEP_4381,
    how=f"call NodePrepareResources; {_HOW}; look into the CDI directory",
    fresh=True,
)
async def stays_prepared(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        ids = ids_of(await rig.client.prepared(claim.ref))
        await _terminated(rig)
        if missing := rig.cdi.missing(ids):
            return Failed(f"after SIGTERM there is no CDI device {missing}, and its pod still runs")
    return Passed()


@checks.add(
    "DRA-STOP-6",
    "Its slices survive an update",
    rule="a driver that is back within 30 seconds keeps its slices: pods need not wait, and nobody has to look again",
    source=sources.DRA_MANAGER,
    how=f"{_HOW}, start it again, compare its slices",
    fresh=True,
)
async def keeps_slices(rig: DraRig) -> Outcome:
    before = await settled(rig)
    await _terminated(rig)
    after_stop = rig.versions()
    if set(before) - set(after_stop):
        return Warned("it deletes its slices when it is stopped: during an update no pod can be scheduled")
    if not await _started_again(rig):
        raise CannotTell("it could not be registered again: see DRA-STOP-4")
    await anyio.sleep(rig.settings.quiet)
    if (after := rig.versions()) != before:
        return Failed(f"its slices had versions {before}, and {after} after it was stopped and started again")
    return Passed()


@checks.add(
    "DRA-STOP-7",
    "A call that is under way when it ends can be repeated",
    rule="calls are answered before the end, or fail: then they are repeated by the kubelet, and succeed",
    source=sources.DRA_MANAGER,
    how=f"call NodePrepareResources; {_HOW} at once; start it again; call it again",
    fresh=True,
)
async def repeated(rig: DraRig) -> Outcome:
    client = rig.client

    async with rig.claim() as claim:

        async def ask() -> None:
            with suppress(PluginError):
                await client.prepare(claim.ref)

        took = await duration(ask)
        await client.unprepare(claim.ref)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.sleep(took * rig.dice.number(20, 80) / 100)
            if not await _terminated(rig):
                return Failed(f"with a call under way it still runs {rig.settings.stop:g} s after SIGTERM")
        if not await _started_again(rig):
            raise CannotTell("it could not be registered again: see DRA-STOP-4")
        try:
            devices = await rig.client.prepared(claim.ref)
        except PluginError as e:
            return Failed(f"a call was under way when it was stopped; then {e.message}")
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"a call was under way when it was stopped; then no CDI device {missing}")
    return Passed()
