"""Two instances of a driver on one node, as in a rolling update: the new one starts before the old one ends."""

import anyio

from devlet.errors import PluginError
from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed
from devlet.sanity.checks.dra.answers import ids_of, same
from devlet.sanity.checks.dra.slices import settled
from devlet.sanity.claim_maker import MadeClaim
from devlet.sanity.dra_client import DraClient
from devlet.sanity.rig import until
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig](sources.DRA_HELPER)

_HOW = "start a second instance with another pod UID in the names of its sockets"


async def _second_registered(rig: DraRig) -> bool:
    """Start it beside the first."""
    rig.need_driver()
    before = rig.kubelet.count
    await rig.start_second()
    return await rig.ready_again(before, drivers=2)


async def _both(rig: DraRig) -> list[DraClient]:
    """CannotTell if they cannot be registered side by side: another check says so."""
    if not await _second_registered(rig):
        raise CannotTell("two instances could not be registered: see DRA-TWO-1")
    return [client for _, client in rig.kubelet.drivers.values()]


@checks.add(
    "DRA-TWO-1",
    "Two instances can be registered",
    rule="kubelets since 1.33 take several instances of a driver, each with sockets of its own",
    how=_HOW,
    fresh=True,
)
async def registered(rig: DraRig) -> Outcome:
    if not await _second_registered(rig):
        found = ", ".join(path.name for path in rig.kubelet.drivers) or "none"
        ending = f"; the second one {rig.second.ending}" if rig.second and rig.second.ending else ""
        return Failed(f"of two instances these are registered: {found}{ending}")
    names = {greeting.name for greeting, _ in rig.kubelet.drivers.values()}
    return Passed() if len(names) == 1 else Failed(f"the two have different names: {', '.join(sorted(names))}")


@checks.add(
    "DRA-TWO-2",
    "One instance knows what the other has prepared",
    rule="the kubelet calls any of the instances: what they know of claims is on disk, and shared",
    how=f"{_HOW}; prepare with one, prepare and unprepare with the other; look into the CDI directory",
    fresh=True,
)
async def shared_state(rig: DraRig) -> Outcome:
    before = rig.cdi.files()
    first, second = await _both(rig)
    async with rig.claim() as claim:
        one = await first.prepared(claim.ref)
        try:
            other = await second.prepared(claim.ref)
        except PluginError as e:
            return Failed(f"prepared by one instance; by the other {e.message}")
        if isinstance(found := same(one, other, "by two instances"), Failed):
            return found
        await second.unprepared(claim.ref)
        if left := rig.cdi.files() - before:
            return Failed(f"prepared by one and unprepared by the other; left over: {', '.join(map(str, left))}")
        devices = await first.prepared(claim.ref)
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"unprepared by one, prepared by the other; no CDI device {missing}")
    return Passed()


@checks.add(
    "DRA-TWO-3",
    "Two instances publish the same slices",
    rule="both say the same of the same devices: the second one finds them published, and writes nothing",
    source=sources.PRACTICE,
    how=f"{_HOW}; compare resourceVersions of the slices before and after",
    fresh=True,
)
async def same_slices(rig: DraRig) -> Outcome:
    before = await settled(rig)
    await _both(rig)
    await anyio.sleep(rig.settings.quiet)
    if (after := rig.versions()) != before:
        return Failed(f"the slices had versions {before}, and {after} with a second instance")
    return Passed()


@checks.add(
    "DRA-TWO-4",
    "One instance ends and the other goes on",
    rule="in a rolling update the old instance ends last: sockets and slices of the new one stay",
    how=f"{_HOW}; stop the first one; call NodePrepareResources on the second",
    fresh=True,
)
async def one_ends(rig: DraRig) -> Outcome:
    first = set(rig.kubelet.drivers)
    await _both(rig)
    await rig.terminate(rig.settings.stop)
    await until(lambda: first.isdisjoint(rig.kubelet.drivers), rig.settings.wait)
    await anyio.sleep(rig.settings.quiet)
    if len(rig.kubelet.drivers) != 1:
        left = ", ".join(path.name for path in rig.kubelet.drivers) or "none"
        return Failed(f"one of two instances was stopped, and these are registered now: {left}")
    if not rig.published:
        return Failed("one of two instances was stopped, and the slices of both are gone")
    async with rig.claim() as claim:
        devices = await rig.client.prepared(claim.ref)
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"one instance was stopped; the other answers without CDI device {missing}")
    return Passed()


@checks.add(
    "DRA-TWO-5",
    "Two instances do not spoil each other's work",
    rule="both may be called at the same time: they take turns, or what they share bears it",
    how=f"{_HOW}; prepare several claims with both at the same time; unprepare all of them with one",
    fresh=True,
)
async def concurrent(rig: DraRig) -> Outcome:
    before = rig.cdi.files()
    both = await _both(rig)
    answers: dict[str, list[str]] = {}

    async def one(client: DraClient, claim: MadeClaim) -> None:
        answers[claim.name] = ids_of(await client.prepared(claim.ref))

    async with rig.claims(min(6, len(rig.offers()))) as claims:
        async with anyio.create_task_group() as tasks:
            for number, claim in enumerate(claims):
                tasks.start_soon(one, both[number % 2], claim)
        for name, ids in answers.items():
            if missing := rig.cdi.missing(ids):
                return Failed(f"prepared by two instances at a time: {name} has no CDI device {missing}")
        for claim in claims:
            await both[0].unprepared(claim.ref)
        left = rig.cdi.files() - before
    if left:
        return Failed(f"prepared by two at a time, and all unprepared by one; left over: {', '.join(map(str, left))}")
    return Passed()
