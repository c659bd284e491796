"""A driver that is killed between two calls, or in the middle of one, and started again."""

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

_RULE = "a pod may be killed at any time; its container is started again, and finds what it left behind"
_AGAIN = "start it again and register it"


async def _back(rig: DraRig) -> None:
    """CannotTell if it does not come back: another check says so."""
    if not await rig.restart():
        raise CannotTell("it could not be registered again after it was killed: see DRA-KILL-1")


@checks.add(
    "DRA-KILL-1",
    "It can be registered again after it was killed",
    rule=f"{_RULE}: sockets without listeners, above all",
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
        return Failed(f"killed and started again, with {stale} left over: not registered in {rig.settings.wait:g} s")
    await rig.client.prepare()
    return Passed()


@checks.add(
    "DRA-KILL-2",
    "Its slices stay as they are when it is started again",
    rule="the devices have not changed: each needless write makes every scheduler look at all of them again",
    source=sources.PRACTICE,
    how=f"kill -9 it; {_AGAIN}; compare resourceVersions of its slices",
    fresh=True,
)
async def same_slices(rig: DraRig) -> Outcome:
    before = await settled(rig)
    await _back(rig)
    await anyio.sleep(rig.settings.quiet)
    if (after := rig.versions()) != before:
        return Failed(f"its slices had versions {before}, and {after} after it was started again")
    return Passed()


@checks.add(
    "DRA-KILL-3",
    "It answers the same after it was killed",
    rule="pods go on while their driver is away: a claim that was prepared is prepared again with the same answer",
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
            return Failed(f"prepared before it was killed; then {e.message}")
        if missing := rig.cdi.missing(ids_of(second)):
            return Failed(f"prepared again, and there is no CDI device {missing}")
        return same(first, second, "before and after it was killed")


@checks.add(
    "DRA-KILL-4",
    "What it prepared stays when it is started again",
    rule="a container of a running pod may be restarted at any time, and its CDI devices are looked up then",
    source=sources.CDI,
    how=f"call NodePrepareResources; kill -9 it; {_AGAIN}; look into the CDI directory",
    fresh=True,
)
async def stays(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        ids = ids_of(await rig.client.prepared(claim.ref))
        await _back(rig)
        await anyio.sleep(rig.settings.quiet)
        if missing := rig.cdi.missing(ids):
            return Failed(f"prepared before it was started again; now there is no CDI device {missing}")
    return Passed()


@checks.add(
    "DRA-KILL-5",
    "It unprepares what it prepared before it was killed",
    rule="NodeUnprepareResources may go to another process than NodePrepareResources did",
    source=sources.KEP_4381,
    how=f"call NodePrepareResources; kill -9 it; {_AGAIN}; call NodeUnprepareResources; look into the CDI directory",
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
            return Failed(f"prepared before it was killed; then {e.message}")
        left = rig.cdi.files() - before
    return Failed(f"left over: {', '.join(sorted(map(str, left)))}") if left else Passed()


@checks.add(
    "DRA-KILL-6",
    "It survives being killed while it prepares",
    rule=f"{_RULE}, half-finished work included",
    how=f"call NodePrepareResources; kill -9 it before the answer; {_AGAIN}; call it again",
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
                    return Failed(f"killed while it prepared; then there is no CDI device {missing}")
                await rig.client.unprepared(claim.ref)
            except PluginError as e:
                return Failed(f"killed while it prepared; then {e.message}")
            if left := [str(path) for path in rig.cdi.files() - before if path.suffix in (".json", ".yaml")]:
                return Failed(f"killed while it prepared; left over: {', '.join(left)}")
    return Passed()


@checks.add(
    "DRA-KILL-7",
    "It survives being killed while it unprepares",
    rule=f"{_RULE}, half-finished work included",
    how=f"call NodeUnprepareResources; kill -9 it before the answer; {_AGAIN}; call it again",
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
                return Failed(f"killed while it unprepared; then {e.message}")
            if left := rig.cdi.files() - before:
                return Failed(f"killed while it unprepared; left over: {', '.join(map(str, left))}")
            try:
                await rig.client.prepared(claim.ref)
            except PluginError as e:
                return Failed(f"killed while it unprepared; prepared again {e.message}")
    return Passed()


_KILLS = 3  # early, later, and close to the answer


async def _interrupted(rig: DraRig, call: Callable[[], Awaitable[object]], moment: float) -> None:
    """Killed so many seconds after the call, and back again."""

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
    "What was given back stays free after it was killed",
    rule="a claim whose NodeUnprepareResources has succeeded is not named again, and others get its devices",
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
                return Failed(f"{offers[0].name} was unprepared before it was killed; for the next claim {e.message}")
    return Passed()
