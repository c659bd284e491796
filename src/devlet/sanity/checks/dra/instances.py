"""Two instances of a driver on one node, as in a rolling update: the new one starts before the old one exits."""

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
    """Start a second instance beside the first. Return whether both are registered."""
    rig.need_driver()
    before = rig.kubelet.count
    await rig.start_second()
    return await rig.ready_again(before, drivers=2)


async def _both(rig: DraRig) -> list[DraClient]:
    """Return the clients of both instances. Raises CannotTell if they cannot be registered side by side."""
    if not await _second_registered(rig):
        raise CannotTell("two instances could not be registered: see DRA-TWO-1")
    return [client for _, client in rig.kubelet.drivers.values()]


@checks.add(
    "DRA-TWO-1",
    "Two instances can be registered",
    rule="kubelets since 1.33 register several instances of a driver, each with its own sockets",
    how=_HOW,
    fresh=True,
)
async def registered(rig: DraRig) -> Outcome:
    if not await _second_registered(rig):
        found = ", ".join(path.name for path in rig.kubelet.drivers) or "none"
        ending = f"; the second one {rig.second.ending}" if rig.second and rig.second.ending else ""
        return Failed(f"of two instances, only these are registered: {found}{ending}")
    names = {greeting.name for greeting, _ in rig.kubelet.drivers.values()}
    if len(names) > 1:
        return Failed(f"the instances have different driver names: {', '.join(sorted(names))}")
    return Passed()


@checks.add(
    "DRA-TWO-2",
    "Each instance knows what the other has prepared",
    rule="the kubelet calls any of the instances, so their state of claims is on disk and shared",
    how=f"{_HOW}; prepare with one, prepare and unprepare with the other; inspect the CDI directory",
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
            return Failed(f"a claim prepared by one instance cannot be prepared by the other: {e.message}")
        if isinstance(found := same(one, other, "by two instances"), Failed):
            return found
        await second.unprepared(claim.ref)
        if left := rig.cdi.files() - before:
            return Failed(
                f"prepared by one instance, unprepared by the other: {', '.join(map(str, left))} was left behind"
            )
        devices = await first.prepared(claim.ref)
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"unprepared by one instance, prepared by the other: CDI device {missing} does not exist")
    return Passed()


@checks.add(
    "DRA-TWO-3",
    "Two instances publish the same slices",
    rule="both instances have the same devices: the second one finds them published and writes nothing",
    source=sources.PRACTICE,
    how=f"{_HOW}; compare resourceVersions of the slices before and after",
    fresh=True,
)
async def same_slices(rig: DraRig) -> Outcome:
    before = await settled(rig)
    await _both(rig)
    await anyio.sleep(rig.settings.quiet)
    if (after := rig.versions()) != before:
        return Failed(f"a second instance changed the slices: versions {before}, then {after}")
    return Passed()


@checks.add(
    "DRA-TWO-4",
    "One instance can exit while the other continues",
    rule="in a rolling update the old instance exits last, and must not remove sockets or slices of the new one",
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
        return Failed(f"after one of two instances was stopped, one should be registered, but these are: {left}")
    if not rig.published:
        return Failed("after one of two instances was stopped, the slices of both are gone")
    async with rig.claim() as claim:
        devices = await rig.client.prepared(claim.ref)
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"after one instance was stopped, CDI device {missing} of the other does not exist")
    return Passed()


@checks.add(
    "DRA-TWO-5",
    "Two instances do not interfere with each other",
    rule="both may be called concurrently: they lock what they share, or it tolerates concurrent use",
    how=f"{_HOW}; prepare several claims with both concurrently; unprepare all of them with one",
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
                return Failed(
                    f"two instances prepared claims concurrently, and CDI device {missing} of {name} does not exist"
                )
        for claim in claims:
            await both[0].unprepared(claim.ref)
        left = rig.cdi.files() - before
    if left:
        return Failed(
            f"prepared concurrently by two instances, unprepared by one: {', '.join(map(str, left))} was left behind"
        )
    return Passed()
