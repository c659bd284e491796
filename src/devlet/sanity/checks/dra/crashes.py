"""A driver that is killed between calls, or during one, and started again."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import anyio

from devlet.errors import PluginError
from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed
from devlet.sanity.checks.dra.answers import ids_of, same
from devlet.sanity.checks.dra.slices import settled
from devlet.sanity.checks.moments import duration, moments
from devlet.sanity.claim_maker import Want
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig](sources.POD_LIFE)

_RULE = "a pod may be killed at any time; its container is restarted and finds what the killed one left behind"
_AGAIN = "start it again and register it"


async def _back(rig: DraRig) -> None:
    """Kill and restart the driver. Raises CannotTell if it does not come back, which another check reports."""
    if not await rig.restart():
        raise CannotTell("the driver could not be registered again after it was killed: see DRA-KILL-1")


@checks.add(
    "DRA-KILL-1",
    "The driver can be registered again after it was killed",
    rule=f"{_RULE}, such as sockets without listeners",
    how=f"kill -9 it; its sockets stay; {_AGAIN}",
    fresh=True,
)
async def killed(rig: DraRig) -> Outcome:
    rig.need_driver()
    before = rig.kubelet.count
    await rig.driver.kill()
    stale = ", ".join(path.name for path in rig.leftovers())
    await rig.driver.start()
    if not await rig.ready_again(before):
        return Failed(
            f"killed and started again with {stale} left over, the driver could not be registered within"
            f" {rig.settings.wait:g} s"
        )
    await rig.client.prepare()
    return Passed()


@checks.add(
    "DRA-KILL-2",
    "Slices do not change when the driver restarts",
    rule="the devices have not changed, and every unnecessary write makes all schedulers examine them again",
    source=sources.PRACTICE,
    how=f"kill -9 it; {_AGAIN}; compare resourceVersions of its slices",
    fresh=True,
)
async def same_slices(rig: DraRig) -> Outcome:
    before = await settled(rig)
    await _back(rig)
    await anyio.sleep(rig.settings.quiet)
    if (after := rig.versions()) != before:
        return Failed(f"the slices had versions {before} before the restart, and {after} after it")
    return Passed()


@checks.add(
    "DRA-KILL-3",
    "Prepare returns the same answer after the driver was killed",
    rule="pods keep running while their driver is away: preparing a prepared claim again returns the same answer",
    source=sources.KEP_4381,
    how=f"call NodePrepareResources; kill -9 it; {_AGAIN}; call it again and compare",
    fresh=True,
)
async def same_answer(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        first = await rig.client.prepared(claim.ref)
        await _back(rig)
        try:
            second = await rig.client.prepared(claim.ref)
        except PluginError as e:
            return Failed(f"a claim prepared before the kill cannot be prepared again: {e.message}")
        if missing := rig.cdi.missing(ids_of(second)):
            return Failed(
                f"a claim prepared before the kill was prepared again, but CDI device {missing} does not exist"
            )
        return same(first, second, "before and after the kill")


@checks.add(
    "DRA-KILL-4",
    "Prepared devices survive a restart of the driver",
    rule="a container of a running pod may restart at any time, and then its CDI devices are looked up again",
    source=sources.CDI,
    how=f"call NodePrepareResources; kill -9 it; {_AGAIN}; inspect the CDI directory",
    fresh=True,
)
async def stays(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        ids = ids_of(await rig.client.prepared(claim.ref))
        await _back(rig)
        await anyio.sleep(rig.settings.quiet)
        if missing := rig.cdi.missing(ids):
            return Failed(f"after a restart of the driver, CDI device {missing} of a prepared claim does not exist")
    return Passed()


@checks.add(
    "DRA-KILL-5",
    "Claims prepared before a kill can be unprepared after it",
    rule="NodeUnprepareResources may reach another process than NodePrepareResources did",
    source=sources.KEP_4381,
    how=f"call NodePrepareResources; kill -9 it; {_AGAIN}; call NodeUnprepareResources; inspect the CDI directory",
    fresh=True,
)
async def unprepares(rig: DraRig) -> Outcome:
    before = rig.cdi.files()
    async with rig.claim() as claim:
        await rig.client.prepared(claim.ref)
        await _back(rig)
        try:
            await rig.client.unprepared(claim.ref)
        except PluginError as e:
            return Failed(f"a claim prepared before the kill cannot be unprepared: {e.message}")
        left = rig.cdi.files() - before
    return Failed(f"left over: {', '.join(sorted(map(str, left)))}") if left else Passed()


@checks.add(
    "DRA-KILL-6",
    "The driver survives being killed while it prepares",
    rule=f"{_RULE}, such as half-finished work",
    how=f"call NodePrepareResources; kill -9 it before the response; {_AGAIN}; call it again",
    fresh=True,
)
async def during_prepare(rig: DraRig) -> Outcome:
    before = rig.cdi.files()
    async with rig.claim() as claim:
        took = await duration(lambda: rig.client.prepared(claim.ref))
        await rig.client.unprepared(claim.ref)
        for moment in moments(took, _KILLS, rig.dice):
            await _interrupted(rig, partial(rig.client.prepare, claim.ref), moment)
            try:
                devices = await rig.client.prepared(claim.ref)
                if missing := rig.cdi.missing(ids_of(devices)):
                    return Failed(
                        f"after a kill during prepare and another prepare, CDI device {missing} does not exist"
                    )
                await rig.client.unprepared(claim.ref)
            except PluginError as e:
                return Failed(f"after a kill during prepare, the next call failed: {e.message}")
            if left := [str(path) for path in rig.cdi.files() - before if path.suffix in (".json", ".yaml")]:
                return Failed(f"after a kill during prepare, unpreparing left {', '.join(left)} behind")
    return Passed()


@checks.add(
    "DRA-KILL-7",
    "The driver survives being killed while it unprepares",
    rule=f"{_RULE}, such as half-finished work",
    how=f"call NodeUnprepareResources; kill -9 it before the response; {_AGAIN}; call it again",
    fresh=True,
)
async def during_unprepare(rig: DraRig) -> Outcome:
    before = rig.cdi.files()
    async with rig.claim() as claim:
        await rig.client.prepared(claim.ref)
        took = await duration(lambda: rig.client.unprepared(claim.ref))
        await rig.client.prepared(claim.ref)
        for moment in moments(took, _KILLS, rig.dice):
            await _interrupted(rig, partial(rig.client.unprepare, claim.ref), moment)
            try:
                await rig.client.unprepared(claim.ref)
            except PluginError as e:
                return Failed(f"after a kill during unprepare, the claim cannot be unprepared: {e.message}")
            if left := rig.cdi.files() - before:
                return Failed(f"after a kill during unprepare, {', '.join(map(str, left))} was left behind")
            try:
                await rig.client.prepared(claim.ref)
            except PluginError as e:
                return Failed(f"after a kill during unprepare, the claim cannot be prepared again: {e.message}")
    return Passed()


_KILLS = 3  # early, later, and close to the response


async def _interrupted(rig: DraRig, call: Callable[[], Awaitable[object]], moment: float) -> None:
    """Kill the driver `moment` seconds after the call began, and restart it."""

    async def ask() -> None:
        with suppress(PluginError):
            await call()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.sleep(moment)
        await rig.driver.kill()
    await _back(rig)


@checks.add(
    "DRA-KILL-8",
    "Unprepared devices stay free after the driver was killed",
    rule="a claim is not mentioned again once NodeUnprepareResources has succeeded, and others get its devices",
    source=sources.KEP_4381,
    how=f"prepare and unprepare a claim; kill -9 it; {_AGAIN}; prepare another claim with the same device",
    fresh=True,
)
async def stays_free(rig: DraRig) -> Outcome:
    offers = rig.maker.take(1)
    async with rig.claim(Want(offers=offers)) as first:
        await rig.client.prepared(first.ref)
        await rig.client.unprepared(first.ref)
        await _back(rig)
        async with rig.claim(Want(offers=offers)) as second:
            try:
                await rig.client.prepared(second.ref)
            except PluginError as e:
                return Failed(
                    f"{offers[0].name} was unprepared before the kill, but another claim cannot get it: {e.message}"
                )
    return Passed()
