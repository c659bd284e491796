"""The ResourceSlices that a driver publishes, and when it writes them."""

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
    "The driver publishes its devices",
    rule="only devices in ResourceSlices are allocated; most drivers publish the devices of their own node",
    how=_GET,
)
async def publishes(rig: DraRig) -> Outcome:
    name = rig.name
    if not rig.published:
        return Warned(f"{rig.settings.wait:g} s after the driver started, {name} has no slice")
    return Passed(f"{len(rig.offers())} devices in {len(rig.slices)} slices")


@checks.add(
    "DRA-SLICE-2",
    "Slices have the registered driver name",
    rule="the kubelet finds the driver of an allocated device by its name: spec.driver is the name in PluginInfo",
    source=sources.DRA_MANAGER,
    how=_GET,
)
async def own_name(rig: DraRig) -> Outcome:
    if not rig.api.is_ours:
        raise CannotTell("other drivers publish slices in this cluster as well")
    others = {each["spec"]["driver"] for each in rig.history.slices.values()} - {rig.name}
    return (
        Failed(f"the driver is registered as {rig.name}, but publishes slices of {', '.join(sorted(others))}")
        if others
        else Passed()
    )


@checks.add(
    "DRA-SLICE-3",
    "Slices belong to the driver's own node",
    rule="spec.nodeName is the node of the devices; allNodes and selectors are for devices outside of nodes",
    how=_GET,
)
async def own_node(rig: DraRig) -> Outcome:
    for each in rig.slices:
        node = each["spec"].get("nodeName", "")
        if node and node != rig.places.node:
            return Failed(f"slice {each['metadata']['name']} has node {node}, expected {rig.places.node}")
    return Passed()


@checks.add(
    "DRA-SLICE-4",
    "Slices are owned by the node",
    rule="a slice of a node has the node as owner and controller, with its UID, so it is deleted with the node",
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
        return f"node {rig.places.node} is not an owner of it"
    if nodes[0].get("uid") != rig.api.node_uid:
        return f"the UID of its owner is {nodes[0].get('uid')!r}, expected {rig.api.node_uid}"
    return "" if nodes[0].get("controller") else "its owner is not marked as controller"


@checks.add(
    "DRA-SLICE-5",
    "Pools are complete",
    rule="a pool is used only if it has as many slices of its highest generation as resourceSliceCount says",
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
            return f"pool {name} has {len(slices)} slices of its newest generation, but resourceSliceCount is {counts}"
    return ""


async def _lasting(rig: DraRig, problem: Callable[[DraRig], str]) -> str:
    """Return a problem that does not go away while the driver is still writing slices."""
    rig.need_slices()

    def holds() -> bool:
        return bool(rig.published) and not problem(rig)

    return "" if await rig.history.until(holds, rig.settings.wait) else problem(rig)


async def settled(rig: DraRig) -> dict[str, str]:
    """Wait until all slices are published, and return their versions."""
    await _lasting(rig, _incomplete)
    await rig.history.changes.settle(rig.settings.settle)
    return rig.versions()


@checks.add(
    "DRA-SLICE-6",
    "Slices of old generations are removed",
    rule="slices of older generations are not used, but every client still reads them",
    how=f"{_GET}; compare spec.pool.generation",
)
async def no_old_ones(rig: DraRig) -> Outcome:
    problem = await _lasting(rig, _old_ones)
    return Failed(problem) if problem else Passed()


def _old_ones(rig: DraRig) -> str:
    newest = {each["metadata"]["name"] for slices in rig.pools().values() for each in slices}
    old = [each["metadata"]["name"] for each in rig.slices if each["metadata"]["name"] not in newest]
    return f"slices of an older generation of their pool still exist: {', '.join(old)}" if old else ""


@checks.add(
    "DRA-SLICE-7",
    "Devices are unique within a pool",
    rule="driver, pool and device name identify a device: a pool with duplicates is invalid and never allocated",
    how=f"{_GET}; compare the names of devices",
)
async def unique(rig: DraRig) -> Outcome:
    counts = Counter((offer.pool, offer.name) for offer in rig.offers())
    twice = [f"{pool}/{device}" for (pool, device), count in counts.items() if count > 1]
    return Failed(f"devices are published more than once: {', '.join(twice[:5])}") if twice else Passed()


@checks.add(
    "DRA-SLICE-8",
    "The API server accepts all slices",
    rule="the API server checks names and limits: 128 devices in a slice, 64 with taints or counters",
    how="look for responses 422 and 403 in the driver's log",
)
async def accepted(rig: DraRig) -> Outcome:
    if rig.api.refusals is None:
        raise CannotTell("the responses of another cluster's API server are not known")
    if refusals := rig.api.refusals:
        return Failed(f"{len(refusals)} writes were rejected, the first one with: {refusals[0][:500]}")
    rig.need_driver()
    return Passed()


@checks.add(
    "DRA-SLICE-9",
    "Slices do not change while nothing happens",
    rule="every write makes all schedulers and autoscalers examine the devices again",
    source=sources.PRACTICE,
    how="kubectl get resourceslices --watch",
)
async def quiet(rig: DraRig) -> Outcome:
    before, count = await settled(rig), rig.history.count
    await anyio.sleep(rig.settings.quiet)
    if rig.versions() != before:
        return Failed(f"{rig.history.count - count} writes in {rig.settings.quiet:g} s, although nothing happened")
    return Passed()


@checks.add(
    "DRA-SLICE-10",
    "A deleted slice is restored",
    rule="a kubelet deletes the slices of its node when it starts, or when a driver is away for 30 seconds",
    source=sources.DRA_MANAGER,
    how="kubectl delete its slices and wait for a minute or two",
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
        return Failed(
            f"{rig.settings.repair:g} s after its slices were deleted, only {len(new_ones())} new ones were published"
        )
    return Passed()


@checks.add(
    "DRA-SLICE-11",
    "Slices of other drivers and nodes are left alone",
    rule="a driver writes only slices with its own name and its own node, not those of the same driver elsewhere",
    how="create a slice with its name for another node, and one of another driver for its node; restart it; check both",
    fresh=True,
)
async def leaves_others(rig: DraRig) -> Outcome:
    if not rig.api.is_ours:
        raise CannotTell("foreign slices cannot be created in a cluster that others use")
    foreign = [_slice(rig.name, "sanity-other-node"), _slice("other.example.com", rig.places.node)]
    made = [await rig.cluster.create(RESOURCE_SLICES, each) for each in foreign]
    names = {each["metadata"]["name"] for each in made}
    try:
        if not await rig.restart():
            raise CannotTell("the driver could not be registered again after a restart: see DRA-KILL-1")
        await anyio.sleep(rig.settings.quiet)
        touched = [each for each in rig.history.changes if each.slice["metadata"]["name"] in names]
    finally:
        for name in names:
            with suppress(NotFound):
                await rig.cluster.delete(RESOURCE_SLICES, name)
    for each in touched:
        if each.type is not EventType.ADDED:
            spec = each.slice["spec"]
            return Failed(f"the driver {each.type.lower()} the slice of {spec['driver']} on node {spec['nodeName']}")
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
    "Slice names are unique across nodes",
    rule="slices have no namespace, and all nodes publish some: use generateName, or a name with driver and node",
    source=sources.PRACTICE,
    how=_GET,
)
async def own_names(rig: DraRig) -> Outcome:
    for each in rig.slices:
        name = each["metadata"]["name"]
        if not each["metadata"].get("generateName") and rig.places.node not in name:
            return Warned(f"slice {name} would have the same name on other nodes")
    return Passed()
