"""A driver that is stopped with SIGTERM, as the runtime stops a pod that is deleted or updated."""

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
    "The driver exits on SIGTERM",
    rule="a pod that is deleted gets SIGTERM, and SIGKILL after its grace period of 30 seconds",
    source=sources.POD_LIFE,
    how=f"{_HOW}; it should exit in less than 30 seconds",
    fresh=True,
)
async def ends(rig: DraRig) -> Outcome:
    return (
        Passed() if await _terminated(rig) else Failed(f"the driver still runs {rig.settings.stop:g} s after SIGTERM")
    )


@checks.add(
    "DRA-STOP-2",
    "The driver removes its sockets when it exits",
    rule="a socket without a listener stays registered, and the kubelet keeps dialing it",
    how=f"{_HOW}; inspect plugins_registry and its own directory",
    fresh=True,
)
async def removes_sockets(rig: DraRig) -> Outcome:
    await _terminated(rig)
    left = [str(path) for path in rig.leftovers()]
    return Failed(f"left over after SIGTERM: {', '.join(left)}") if left else Passed()


@checks.add(
    "DRA-STOP-3",
    "The driver exits even if streams are open",
    rule="the kubelet never closes a health stream: a driver that waits for its streams to end waits forever",
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
    if not ended:
        return Failed(f"with an open stream the driver still runs {rig.settings.stop:g} s after SIGTERM")
    return Passed()


@checks.add(
    "DRA-STOP-4",
    "The driver can be started again after it was stopped",
    rule="an update stops and starts the driver, and the new instance is registered like the old one",
    how=f"{_HOW}, start it again and register it",
    fresh=True,
)
async def starts_again(rig: DraRig) -> Outcome:
    await _terminated(rig)
    if not await _started_again(rig):
        return Failed(f"stopped and started again, the driver was not registered within {rig.settings.wait:g} s")
    await rig.client.prepare()
    return Passed()


@checks.add(
    "DRA-STOP-5",
    "Prepared claims stay prepared when the driver exits",
    rule="pods keep running while their driver is updated, and their containers may restart meanwhile",
    source=sources.KEP_4381,
    how=f"call NodePrepareResources; {_HOW}; inspect the CDI directory",
    fresh=True,
)
async def stays_prepared(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        ids = ids_of(await rig.client.prepared(claim.ref))
        await _terminated(rig)
        if missing := rig.cdi.missing(ids):
            return Failed(f"after SIGTERM, CDI device {missing} of a prepared claim does not exist")
    return Passed()


@checks.add(
    "DRA-STOP-6",
    "Slices survive an update of the driver",
    rule="a driver that is back within 30 seconds keeps its slices, so pods need not wait during an update",
    source=sources.DRA_MANAGER,
    how=f"{_HOW}, start it again, compare its slices",
    fresh=True,
)
async def keeps_slices(rig: DraRig) -> Outcome:
    before = await settled(rig)
    await _terminated(rig)
    after_stop = rig.versions()
    if set(before) - set(after_stop):
        return Warned("the driver deletes its slices when it exits, so no pod can be scheduled during an update")
    if not await _started_again(rig):
        raise CannotTell("the driver could not be registered again: see DRA-STOP-4")
    await anyio.sleep(rig.settings.quiet)
    if (after := rig.versions()) != before:
        return Failed(
            f"the slices had versions {before} before the driver was stopped, and {after} after it started again"
        )
    return Passed()


@checks.add(
    "DRA-STOP-7",
    "A call interrupted by shutdown can be repeated",
    rule="a call is answered before the driver exits, or fails: then the kubelet repeats it, and it succeeds",
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
                return Failed(f"with a call in progress the driver still runs {rig.settings.stop:g} s after SIGTERM")
        if not await _started_again(rig):
            raise CannotTell("the driver could not be registered again: see DRA-STOP-4")
        try:
            devices = await rig.client.prepared(claim.ref)
        except PluginError as e:
            return Failed(f"a call in progress when the driver was stopped cannot be repeated: {e.message}")
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"a call interrupted by SIGTERM was repeated, but CDI device {missing} does not exist")
    return Passed()
