"""Devices that come and go, as `--change` makes them."""

from collections.abc import Iterator
from contextlib import aclosing

import anyio

from devlet.errors import PluginError
from devlet.objects.documents import Document
from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed, Warned
from devlet.sanity.checks.dra import slices
from devlet.sanity.checks.dra.answers import ids_of
from devlet.sanity.checks.dra.health import first_list, health_service
from devlet.sanity.claim_maker import Offer, Want
from devlet.sanity.rig_dra import DraRig
from devlet.wire.dra_health import api_pb2 as pb

checks = Checks[DraRig](sources.RESOURCE_API)

_HOW = "make other devices be there, and look at its slices"


async def _is_told(rig: DraRig) -> bool:
    """Make its devices change; whether its slices have."""
    before = [each.device for each in rig.offers()]
    await rig.change_devices()
    return await rig.history.until(
        lambda: bool(rig.published) and [each.device for each in rig.offers()] != before, rig.settings.wait
    )


async def _changed(rig: DraRig) -> None:
    """CannotTell if its slices have not."""
    if not await _is_told(rig):
        raise CannotTell("a change of its devices is not published: see DRA-CHANGE-1")


@checks.add(
    "DRA-CHANGE-1",
    "A change of its devices is published",
    rule="slices say what there is: what has gone must not be allocated any more",
    how=_HOW,
    fresh=True,
)
async def published(rig: DraRig) -> Outcome:
    if not await _is_told(rig):
        return Failed(f"its devices changed, and {rig.settings.wait:g} s later its slices are as before")
    return Passed()


@checks.add(
    "DRA-CHANGE-2",
    "After a change its pools are complete",
    rule="a pool that is changed in several steps gets a higher generation, and in the end all of it is there",
    how=f"{_HOW}: spec.pool",
    fresh=True,
)
async def complete(rig: DraRig) -> Outcome:
    await _changed(rig)
    found = await slices.complete(rig)
    return found if isinstance(found, Failed) else await slices.no_old_ones(rig)


@checks.add(
    "DRA-CHANGE-3",
    "The generation of a pool never falls",
    rule="a pool's highest generation counts: with a lower one new slices are taken for old ones",
    how=f"{_HOW}: spec.pool.generation, before and after",
    fresh=True,
)
async def generations(rig: DraRig) -> Outcome:
    highest, before = _generations(rig), rig.history.count
    await _changed(rig)
    await rig.history.changes.settle(rig.settings.settle)
    return _fallen(rig, highest, before)


def _generations(rig: DraRig) -> dict[str, int]:
    """Of pools, by their names."""
    return {name: pool[0]["spec"]["pool"]["generation"] for name, pool in rig.pools().items()}


def _written(rig: DraRig, before: int) -> Iterator[Document]:
    """Its slices as they were written after so many changes."""
    for change in rig.history.changes.since(before):
        if change.type != "DELETED" and rig.is_its(change.slice):
            yield change.slice


def _fallen(rig: DraRig, highest: dict[str, int], before: int) -> Outcome:
    """A pool may begin anew, if no slice of a higher generation is left."""
    highest = dict(highest)
    for each in _written(rig, before):
        pool = each["spec"]["pool"]
        name, was, now = pool["name"], highest.get(pool["name"], 0), pool["generation"]
        if now < was:
            seen = f"pool {name} had generation {was}, then {now}"
            is_left = _generations(rig).get(name, 0) >= was
            return Failed(f"{seen}, and slices of {was} are still there") if is_left else Warned(seen)
        highest[name] = now
    return Passed()


@checks.add(
    "DRA-CHANGE-4",
    "A change of its devices is told as health, too",
    rule="a stream of health goes on as long as the driver: devices that come are told of, those that went are not",
    source=sources.KEP_4680,
    how="call NodeWatchResources; make other devices be there; compare what is sent then with its slices",
    fresh=True,
)
async def health(rig: DraRig) -> Outcome:
    rig.need_change()
    async with aclosing(rig.client.health(health_service(rig))) as lists:
        first, before = _told(await first_list(rig, lists)), _published(rig)
        await _changed(rig)
        await rig.history.changes.settle(rig.settings.settle)
        told = first
        with anyio.move_on_after(rig.settings.wait):
            async for each in lists:
                told = _told(each)
                if told != first and set(told) == _published(rig):
                    return Passed()
    if _published(rig) == before:
        raise CannotTell("other devices have the same names: their health need not be another one")
    missing, gone = _published(rig) - set(told), set(told) - _published(rig)
    return Failed(f"{rig.settings.wait:g} s later {len(missing)} devices have no health, and {len(gone)} that are gone")


def _told(message: pb.NodeWatchResourcesResponse) -> dict[tuple[str, str], int]:
    return {(each.device.pool_name, each.device.device_name): each.health for each in message.devices}


def _published(rig: DraRig) -> set[tuple[str, str]]:
    return {(each.pool, each.name) for each in rig.offers()}


@checks.add(
    "DRA-CHANGE-5",
    "A change of several slices raises the generation of their pool",
    rule="with the same generation a pool that is half changed cannot be told from a whole one, and is allocated from: "
    "spec.pool.generation; one write alone may keep it, as with Kubernetes' own helper",
    how=f"kubectl get resourceslices -w -o yaml; {_HOW}: spec.pool.generation of each that is written",
    fresh=True,
)
async def raised(rig: DraRig) -> Outcome:
    await slices.settled(rig)
    known = {each["metadata"]["name"]: each["spec"] for each in rig.published}
    highest, before = _generations(rig), rig.history.count
    await _changed(rig)
    await rig.history.changes.settle(rig.settings.settle)
    several: dict[str, set[str]] = {}
    for each in _written(rig, before):
        pool, name = each["spec"]["pool"], each["metadata"]["name"]
        if pool["generation"] == highest.get(pool["name"]) and each["spec"] != known.get(name):
            several.setdefault(pool["name"], set()).add(name)
    for pool_name, names in several.items():
        if len(names) > 1:
            written = ", ".join(sorted(names)[:5])
            return Failed(f"pool {pool_name} still has generation {highest[pool_name]}; written were {written}")
    return Passed()


@checks.add(
    "DRA-CHANGE-6",
    "The generation of a pool does not fall when it is started again",
    rule="consumers take the slices with the highest generation, which is in the API and not in the driver's memory: "
    "spec.pool.generation",
    how="make other devices be there, twice; kill -9 it and start it again; once more; compare spec.pool.generation",
    fresh=True,
)
async def after_restart(rig: DraRig) -> Outcome:
    highest, before = _generations(rig), rig.history.count
    await _changed(rig)
    await _changed_again(rig, "the command of --change makes a difference only once")
    if not await rig.restart():
        raise CannotTell("it could not be registered again after it was killed: see DRA-KILL-1")
    await _changed_again(rig, "it was started again, and then a change was not published")
    return _fallen(rig, highest, before)


async def _changed_again(rig: DraRig, otherwise: str) -> None:
    """CannotTell if its slices have not."""
    await rig.history.changes.settle(rig.settings.settle)
    if not await _is_told(rig):
        raise CannotTell(otherwise)
    await rig.history.changes.settle(rig.settings.settle)


@checks.add(
    "DRA-CHANGE-7",
    "A device that is new can be prepared",
    rule="what is published is allocated, and a pod that was given a device waits until it is prepared",
    source=sources.KEP_4381,
    how=f"{_HOW}; prepare a claim with a device that was not there before",
    fresh=True,
)
async def new_device(rig: DraRig) -> Outcome:
    new = await _come(rig) or await _come(rig)  # what went the first time may come the second
    if not new:
        raise CannotTell("its devices changed, and none came that can be allocated")
    async with rig.claim(Want(offers=new[:1])) as claim:
        try:
            devices = await rig.client.prepared(claim.ref)
        except PluginError as e:
            return Failed(f"{new[0].name} is new; {e.message}")
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"{new[0].name} is new, and prepared; there is no CDI device {missing}")
    return Passed()


async def _come(rig: DraRig) -> list[Offer]:
    """Devices that can be allocated after a change, and could not before."""
    before = {(each.pool, each.name) for each in rig.offers() if not each.is_tainted}
    await _changed(rig)
    await rig.history.changes.settle(rig.settings.settle)
    return [each for each in rig.offers() if (each.pool, each.name) not in before and not each.is_tainted]
