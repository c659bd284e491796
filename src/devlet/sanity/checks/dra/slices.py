"""What a driver publishes: its ResourceSlices, and when it writes them."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import anyio

from devlet.cluster.client import EventType
from devlet.errors import NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_SLICES
from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed, Warned
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig](sources.RESOURCE_API)

_GET = "kubectl get resourceslices -o yaml"


@checks.add(
    "DRA-SLICE-1",
    "It publishes its devices",
    rule="what is in no ResourceSlice is never allocated; most drivers publish the devices of their own node",
    how=_GET,
)
async def publishes(rig: DraRig) -> Outcome:
    name = rig.name
    if not rig.published:
        return Warned(f"{rig.settings.wait:g} s after its start there is no slice of {name}")
    return Passed(f"{len(rig.offers())} devices in {len(rig.slices)} slices")


@checks.add(
    "DRA-SLICE-2",
    "Its slices have the name under which it is registered",
    rule="the kubelet finds the driver of an allocated device by its name: spec.driver is that of PluginInfo",
    source=sources.DRA_MANAGER,
    how=_GET,
)
async def own_name(rig: DraRig) -> Outcome:
    if not rig.api.is_ours:
        raise CannotTell("others publish slices in this cluster, too")
    others = {each["spec"]["driver"] for each in rig.history.slices.values()} - {rig.name}
    return (
        Failed(f"it is registered as {rig.name}, and publishes for {', '.join(sorted(others))}") if others else Passed()
    )


@checks.add(
    "DRA-SLICE-3",
    "Its slices are of its own node",
    rule="spec.nodeName says where the devices are; allNodes and selectors are for devices that are not in a node",
    how=_GET,
)
async def own_node(rig: DraRig) -> Outcome:
    for each in rig.slices:
        node = each["spec"].get("nodeName", "")
        if node and node != rig.places.node:
            return Failed(f"slice {each['metadata']['name']} is of node {node}, and not of {rig.places.node}")
    return Passed()


@checks.add(
    "DRA-SLICE-4",
    "Its slices belong to the node",
    rule="a slice of a node has it as its owner, with its UID and as controller: so they go when the node goes",
    how=_GET,
)
async def owners(rig: DraRig) -> Outcome:
    for each in rig.slices:
        if each["spec"].get("nodeName") and (problem := _owner_problem(rig, each)):
            return Failed(f"slice {each['metadata']['name']}: {problem}")
    return Passed()


def _owner_problem(rig: DraRig, slice: Document) -> str:
    owners = slice["metadata"].get("ownerReferences") or []
    nodes = [each for each in owners if each.get("kind") == "Node" and each.get("name") == rig.places.node]
    if not nodes:
        return f"it has no owner that is node {rig.places.node}"
    if nodes[0].get("uid") != rig.api.node_uid:
        return f"its owner has UID {nodes[0].get('uid')!r}, and the node {rig.api.node_uid}"
    return "" if nodes[0].get("controller") else "its owner is not its controller"


@checks.add(
    "DRA-SLICE-5",
    "Its pools are complete",
    rule="a pool is used only if it has resourceSliceCount slices of its highest generation",
    how=f"{_GET}; compare spec.pool of all slices",
)
async def complete(rig: DraRig) -> Outcome:
    problem = await _lasting(rig, _incomplete)
    return Failed(problem) if problem else Passed()


def _incomplete(rig: DraRig) -> str:
    for name, slices in rig.pools().items():
        wanted = {each["spec"]["pool"]["resourceSliceCount"] for each in slices}
        if wanted != {len(slices)}:
            counts = " and ".join(map(str, sorted(wanted)))
            return f"pool {name} has {len(slices)} slices of its newest generation, and says {counts}"
    return ""


async def _lasting(rig: DraRig, problem: Callable[[DraRig], str]) -> str:
    """Many slices take a while: what is wrong with them counts if it does not pass."""
    rig.need_slices()

    def holds() -> bool:
        return bool(rig.published) and not problem(rig)

    return "" if await rig.history.until(holds, rig.settings.wait) else problem(rig)


async def settled(rig: DraRig) -> dict[str, str]:
    """Versions of its slices, once it has published all of them."""
    await _lasting(rig, _incomplete)
    await rig.history.changes.settle(rig.settings.settle)
    return rig.versions()


@checks.add(
    "DRA-SLICE-6",
    "No slice of an old generation stays",
    rule="slices of older generations are in nobody's way, and are still read by everybody",
    how=f"{_GET}; compare spec.pool.generation",
)
async def no_old_ones(rig: DraRig) -> Outcome:
    problem = await _lasting(rig, _old_ones)
    return Failed(problem) if problem else Passed()


def _old_ones(rig: DraRig) -> str:
    newest = {each["metadata"]["name"] for slices in rig.pools().values() for each in slices}
    old = [each["metadata"]["name"] for each in rig.slices if each["metadata"]["name"] not in newest]
    return f"of an older generation than others of their pool: {', '.join(old)}" if old else ""


@checks.add(
    "DRA-SLICE-7",
    "No device is in a pool twice",
    rule="driver, pool and device name one device: pools with duplicates are invalid, and none of them is allocated",
    how=f"{_GET}; compare the names of devices",
)
async def unique(rig: DraRig) -> Outcome:
    counts = Counter((offer.pool, offer.name) for offer in rig.offers())
    twice = [f"{pool}/{device}" for (pool, device), count in counts.items() if count > 1]
    return Failed(f"published more than once: {', '.join(twice[:5])}") if twice else Passed()


@checks.add(
    "DRA-SLICE-8",
    "The API server takes its slices",
    rule="limits and names are checked by the API server: 128 devices in a slice, 64 with taints or counters",
    how="look into the driver's log for answers 422 and 403",
)
async def accepted(rig: DraRig) -> Outcome:
    if rig.api.refusals is None:
        raise CannotTell("the answers of another cluster's API server are not known")
    if refusals := rig.api.refusals:
        return Failed(f"{len(refusals)} writes were refused, the first one with: {refusals[0][:500]}")
    rig.need_driver()
    return Passed()


@checks.add(
    "DRA-SLICE-9",
    "Its slices stay as they are while nothing happens",
    rule="each write makes every scheduler and autoscaler look at the devices again",
    source=sources.PRACTICE,
    how="kubectl get resourceslices --watch",
)
async def quiet(rig: DraRig) -> Outcome:
    before, count = await settled(rig), rig.history.count
    await anyio.sleep(rig.settings.quiet)
    if rig.versions() != before:
        return Failed(f"{rig.history.count - count} changes in {rig.settings.quiet:g} s in which nothing happened")
    return Passed()


@checks.add(
    "DRA-SLICE-10",
    "A slice that was deleted comes back",
    rule="a kubelet deletes the slices of its node when it starts, or when a driver was away for 30 seconds",
    source=sources.DRA_MANAGER,
    how="kubectl delete its slices, and wait for a minute or two",
    fresh=True,
)
async def comes_back(rig: DraRig) -> Outcome:
    devices = {(each.pool, each.name) for each in rig.offers()}
    deleted = {each["metadata"]["uid"] for each in rig.of_node()}
    kept = {each["metadata"]["uid"] for each in rig.slices} - deleted
    await rig.delete_slices()

    def new_ones() -> list[Document]:
        return [each for each in rig.published if each["metadata"]["uid"] not in deleted | kept]

    def back() -> bool:
        uids = {each["metadata"]["uid"] for each in rig.published}
        return (
            bool(new_ones())
            and uids.isdisjoint(deleted)
            and {(each.pool, each.name) for each in rig.offers()} == devices
        )

    if not await rig.history.until(back, rig.settings.repair):
        return Failed(f"its slices were deleted; {rig.settings.repair:g} s later {len(new_ones())} are back")
    return Passed()


@checks.add(
    "DRA-SLICE-11",
    "It leaves the slices of others alone",
    rule="a driver writes slices of its own name and its own node only: those of the same driver elsewhere are not its",
    how="create a slice of its name for another node, and one of another driver for its node; restart it; look at both",
    fresh=True,
)
async def leaves_others(rig: DraRig) -> Outcome:
    if not rig.api.is_ours:
        raise CannotTell("slices of others would be made in a cluster that is not ours")
    foreign = [_slice(rig.name, "sanity-other-node"), _slice("other.example.com", rig.places.node)]
    made = [await rig.cluster.create(RESOURCE_SLICES, each) for each in foreign]
    names = {each["metadata"]["name"] for each in made}
    try:
        if not await rig.restart():
            raise CannotTell("it could not be registered again after it was started again")
        await anyio.sleep(rig.settings.quiet)
        touched = [each for each in rig.history.changes if each.slice["metadata"]["name"] in names]
    finally:
        for name in names:
            with suppress(NotFound):
                await rig.cluster.delete(RESOURCE_SLICES, name)
    for each in touched:
        if each.type is not EventType.ADDED:
            spec = each.slice["spec"]
            return Failed(f"{each.type.lower()}: the slice of {spec['driver']} on node {spec['nodeName']}")
    return Passed()


def _slice(driver: str, node: str) -> Document:
    return {
        "metadata": {"generateName": f"{node}-{driver}-"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "sanity"}],
        },
    }


@checks.add(
    "DRA-SLICE-12",
    "The names of its slices do not collide",
    rule="slices have no namespace, and all nodes publish: generateName, or a name with driver and node in it",
    source=sources.PRACTICE,
    how=_GET,
)
async def own_names(rig: DraRig) -> Outcome:
    for each in rig.slices:
        name = each["metadata"]["name"]
        if not each["metadata"].get("generateName") and rig.places.node not in name:
            return Warned(f"a slice is called {name}: on the next node it would have the same name")
    return Passed()
