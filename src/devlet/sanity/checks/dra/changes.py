"""Devices that come and go, as `--change` makes them."""

from contextlib import aclosing

import anyio

from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed
from devlet.sanity.checks.dra import slices
from devlet.sanity.checks.dra.health import first_list, health_service
from devlet.sanity.rig_dra import DraRig
from devlet.wire.dra_health import api_pb2 as pb

checks = Checks[DraRig]()

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
    highest = {name: pool[0]["spec"]["pool"]["generation"] for name, pool in rig.pools().items()}
    before = rig.history.count
    await _changed(rig)
    await rig.history.changes.settle(rig.settings.settle)
    for change in rig.history.changes.since(before):
        pool = change.slice["spec"]["pool"]
        if change.type != "DELETED" and rig.is_its(change.slice):
            if pool["generation"] < highest.get(pool["name"], 0):
                return Failed(f"pool {pool['name']} had generation {highest[pool['name']]}, then {pool['generation']}")
            highest[pool["name"]] = max(pool["generation"], highest.get(pool["name"], 0))
    return Passed()


@checks.add(
    "DRA-CHANGE-4",
    "A change of its devices is told as health, too",
    rule="a stream of health goes on as long as the driver: devices that come are told of, those that went are not",
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
