"""Changes of a driver's devices, which the command of `--change` causes."""

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

_HOW = "change its devices and compare its slices"


async def _is_published(rig: DraRig) -> bool:
    """Change the devices. Return whether the slices have changed as well."""
    before = [each.device for each in rig.offers()]
    await rig.change_devices()
    return await rig.history.until(
        lambda: bool(rig.published) and [each.device for each in rig.offers()] != before, rig.settings.wait
    )


async def _changed(rig: DraRig) -> None:
    """Change the devices. Raises CannotTell if the slices do not change."""
    if not await _is_published(rig):
        raise CannotTell("a change of its devices is not published: see DRA-CHANGE-1")


@checks.add(
    "DRA-CHANGE-1",
    "A change of devices is published",
    rule="devices are allocated from slices, so a device that has disappeared must not remain in them",
    how=_HOW,
    fresh=True,
)
async def published(rig: DraRig) -> Outcome:
    if not await _is_published(rig):
        return Failed(f"{rig.settings.wait:g} s after its devices changed, the slices have not changed")
    return Passed()


@checks.add(
    "DRA-CHANGE-2",
    "Pools are complete after a change",
    rule="a pool that is changed in several steps gets a higher generation, and is complete in the end",
    how=f"{_HOW}: spec.pool",
    fresh=True,
)
async def complete(rig: DraRig) -> Outcome:
    await _changed(rig)
    found = await slices.complete(rig)
    return found if isinstance(found, Failed) else await slices.no_old_ones(rig)


@checks.add(
    "DRA-CHANGE-3",
    "The generation of a pool never decreases",
    rule="the highest generation of a pool counts: with a lower one, new slices are treated as outdated",
    how=f"{_HOW}: spec.pool.generation, before and after",
    fresh=True,
)
async def generations(rig: DraRig) -> Outcome:
    highest, before = _generations(rig), rig.history.count
    await _changed(rig)
    await rig.history.changes.settle(rig.settings.settle)
    return _fallen(rig, highest, before)


def _generations(rig: DraRig) -> dict[str, int]:
    """Return the generations by pool name."""
    return {name: pool[0]["spec"]["pool"]["generation"] for name, pool in rig.pools().items()}


def _written(rig: DraRig, before: int) -> Iterator[Document]:
    """Yield its slices as they were written since the first `before` changes."""
    for change in rig.history.changes.since(before):
        if change.type != "DELETED" and rig.is_its(change.slice):
            yield change.slice


def _fallen(rig: DraRig, highest: dict[str, int], before: int) -> Outcome:
    """Check that no generation decreased, except in a pool that has no slice of the higher generation left."""
    highest = dict(highest)
    for each in _written(rig, before):
        pool = each["spec"]["pool"]
        name, was, now = pool["name"], highest.get(pool["name"], 0), pool["generation"]
        if now < was:
            seen = f"the generation of pool {name} decreased from {was} to {now}"
            is_left = _generations(rig).get(name, 0) >= was
            return Failed(f"{seen}, while slices of {was} still exist") if is_left else Warned(seen)
        highest[name] = now
    return Passed()


@checks.add(
    "DRA-CHANGE-4",
    "A change of devices is reported on the health stream",
    rule="a health stream stays open as long as the driver runs, and reports exactly the published devices",
    source=sources.KEP_4680,
    how="call NodeWatchResources; change its devices; compare the next message with its slices",
    fresh=True,
)
async def health(rig: DraRig) -> Outcome:
    rig.need_change()
    async with aclosing(rig.client.health(health_service(rig))) as lists:
        first, before = _reported(await first_list(rig, lists)), _published(rig)
        await _changed(rig)
        await rig.history.changes.settle(rig.settings.settle)
        reported = first
        with anyio.move_on_after(rig.settings.wait):
            async for each in lists:
                reported = _reported(each)
                if reported != first and set(reported) == _published(rig):
                    return Passed()
    if _published(rig) == before:
        raise CannotTell("the changed devices have the same names, so their health may be the same")
    missing, gone = _published(rig) - set(reported), set(reported) - _published(rig)
    return Failed(
        f"{rig.settings.wait:g} s after a change {len(missing)} published devices have no health, and"
        f" {len(gone)} removed devices still have it"
    )


def _reported(message: pb.NodeWatchResourcesResponse) -> dict[tuple[str, str], int]:
    return {(each.device.pool_name, each.device.device_name): each.health for each in message.devices}


def _published(rig: DraRig) -> set[tuple[str, str]]:
    return {(each.pool, each.name) for each in rig.offers()}


@checks.add(
    "DRA-CHANGE-5",
    "A change of several slices raises the generation of their pool",
    rule="with the same generation, a pool that is half changed looks complete, and its devices are allocated: "
    "spec.pool.generation; a single write may keep it, as with Kubernetes' own helper",
    how=f"kubectl get resourceslices -w -o yaml; {_HOW}: spec.pool.generation of each slice that is written",
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
            return Failed(f"pool {pool_name} kept generation {highest[pool_name]}, although {written} were written")
    return Passed()


@checks.add(
    "DRA-CHANGE-6",
    "The generation of a pool does not decrease when the driver restarts",
    rule="consumers take the slices with the highest generation, which is in the API and not in the driver's memory: "
    "spec.pool.generation",
    how="change its devices twice; kill -9 it and start it again; change them again; compare spec.pool.generation",
    fresh=True,
)
async def after_restart(rig: DraRig) -> Outcome:
    highest, before = _generations(rig), rig.history.count
    await _changed(rig)
    await _changed_again(rig, "the command of --change changes the devices only once")
    if not await rig.restart():
        raise CannotTell("the driver could not be registered again after it was killed: see DRA-KILL-1")
    await _changed_again(rig, "after a restart of the driver a change was not published")
    return _fallen(rig, highest, before)


async def _changed_again(rig: DraRig, otherwise: str) -> None:
    """Change the devices. Raises CannotTell with the reason `otherwise` if the slices do not change."""
    await rig.history.changes.settle(rig.settings.settle)
    if not await _is_published(rig):
        raise CannotTell(otherwise)
    await rig.history.changes.settle(rig.settings.settle)


@checks.add(
    "DRA-CHANGE-7",
    "A new device can be prepared",
    rule="published devices are allocated, and a pod waits until its devices are prepared",
    source=sources.KEP_4381,
    how=f"{_HOW}; prepare a claim with a device that was not published before",
    fresh=True,
)
async def new_device(rig: DraRig) -> Outcome:
    new = await _come(rig) or await _come(rig)  # devices removed by the first change may come back with the second
    if not new:
        raise CannotTell("the devices changed, but none was added that can be allocated")
    async with rig.claim(Want(offers=new[:1])) as claim:
        try:
            devices = await rig.client.prepared(claim.ref)
        except PluginError as e:
            return Failed(f"the new device {new[0].name} cannot be prepared: {e.message}")
        if missing := rig.cdi.missing(ids_of(devices)):
            return Failed(f"the new device {new[0].name} was prepared, but CDI device {missing} does not exist")
    return Passed()


async def _come(rig: DraRig) -> list[Offer]:
    """Change the devices and return those that can now be allocated and could not before."""
    before = {(each.pool, each.name) for each in rig.offers() if not each.is_tainted}
    await _changed(rig)
    await rig.history.changes.settle(rig.settings.settle)
    return [each for each in rig.offers() if (each.pool, each.name) not in before and not each.is_tainted]
