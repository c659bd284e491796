"""Random days in a small cluster: objects are created and deleted, writes fail, the scheduler is stopped and started.

Whenever the cluster is at rest: no device is allocated twice, no counter is exceeded, every pod that fits has a node,
every other pod says why, and nothing is held for deleted pods. The same seed gives the same day, except for the order
of concurrent events.
"""

from collections.abc import Iterator
from random import Random

import anyio
import pytest

from devlet.control.scheduler import claim_checks, extended_resources, fit, reasons
from devlet.control.scheduler.devices import Devices
from devlet.control.scheduler.nodes import NodeTable
from devlet.control.scheduler.placing import Placer
from devlet.control.scheduler.settings import ReportTimes, Settings
from devlet.control.scheduler.subject import Subject, read_subject
from devlet.control.search_time import SearchTime
from devlet.errors import Conflict, DevletError, NotFound, Unavailable
from devlet.kit.backoff import Backoff
from devlet.objects import kinds
from devlet.objects.claims.nodes import is_usable_on
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import NodeName, PodUID
from devlet.objects.kinds import Resource
from devlet.objects.pods.claims import claim_names
from devlet.objects.types.claim import DeviceResult, ResourceClaim
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod
from devlet.objects.types.slice import ResourceSlice
from devlet.testing.waiting import until
from tests.support.allocation.rules import IMPROVED, Given, Want, requests_of
from tests.support.allocation.rules import World as RuleBook
from tests.support.allocation.selectors import selector_matches
from tests.support.allocation.supply import key_of
from tests.support.workloads import DRIVER, claim, device_class, node, pod, slice_of, template, wish
from tests.unit.control.conftest import World, Write

pytestmark = pytest.mark.anyio

SETTINGS = Settings(reports=ReportTimes(0.02, again=0.02, refresh=0.05), retry=Backoff(0.01, 0.1))
NODES = ("n1", "n2", "n3")
EXTENDED = "example.com/gpu"


class Snapshot:
    """The stored cluster, and what a scheduler that sees it for the first time would do."""

    def __init__(self, objects: dict[str, list[Document]]) -> None:
        self.documents = objects
        self.pods = [view(Pod, each) for each in objects["pods"]]
        self.claims = {each["metadata"]["name"]: view(ResourceClaim, each) for each in objects["claims"]}
        self.devices = Devices()
        self.table = NodeTable(self.devices.allocator)
        classes = [view(DeviceClass, each) for each in objects["classes"]]
        self.classes = extended_resources.classes_by_resource(classes)
        for each in classes:
            self.devices.see_class(None, each)
        for slice in objects["slices"]:
            self.devices.see_slice(None, view(ResourceSlice, slice))
        for found in self.claims.values():
            if found.results:
                self.devices.hold(("default", found.name), found.results)
        for machine in objects["nodes"]:
            self.table.put(view(Node, machine))
        for bound in self.bound:
            self.table.occupy(PodUID(bound.uid), NodeName(bound.spec.node_name), fit.needs_of(bound))

    @property
    def bound(self) -> list[Pod]:
        return [each for each in self.pods if each.spec.node_name and not each.is_finished]

    @property
    def pending(self) -> list[Pod]:
        return [each for each in self.pods if not each.spec.node_name and not each.is_finished]

    # What must be true at any time

    def conflicts(self) -> Iterator[str]:
        """Return the devices of each node that are allocated more often than allowed."""
        problem: Document = {**self.documents, "allocated": []}
        problem["claims"] = [each for each in self.documents["claims"] if self.claims[each["metadata"]["name"]].results]
        for each in self.documents["nodes"]:
            rules = RuleBook(problem, each["metadata"]["name"], selector_matches(problem), IMPROVED)
            given = [
                Given(Want(index, result["request"], result["request"], _wanted(claim, result)), offer, result)
                for index, claim in enumerate(problem["claims"])
                for result in claim["status"]["allocation"]["devices"]["results"]
                if (offer := rules.offers.get(key_of(result)))
            ]
            yield from rules.conflicts(given)

    def overfull(self) -> Iterator[str]:
        for entry in self.table.entries:
            for name, used in entry.use.used.items():
                if used > entry.view.allocatable.get(name, 0):
                    yield f"{entry.name}: {used} {name} are used"

    # What must be true at rest

    def unrest(self) -> Iterator[str]:
        yield from (f"{each.name}: {problem}" for each in self.bound for problem in self._lacks(each))
        there = {each.uid for each in self.pods if not each.is_finished}
        for found in self.claims.values():
            gone = [each.name for each in found.status.reserved_for if each.uid not in there]
            if gone:
                yield f"{found.name} is reserved for {gone}"
        for each in self.pending:
            subject = self._subject(each)
            if isinstance(subject, Subject) and not self._tainted(subject) and self._place(subject):
                yield f"{each.name} has a place, and waits"
            if not _said(each):
                yield f"{each.name} does not say why it waits"

    def _lacks(self, each: Pod) -> Iterator[str]:
        entry = self.table.get(each.spec.node_name)
        for name in claim_names(each):
            used = self.claims.get(name)
            if used is None:
                yield f"{name} does not exist"
            elif not used.results or each.uid not in {one.uid for one in used.status.reserved_for}:
                yield f"{used.name} has no devices, or is not reserved for it"
            elif entry and not is_usable_on(used, entry.name, entry.view.labels):
                yield f"{used.name} cannot be used on {entry.name}"

    def stale(self) -> Iterator[str]:
        """Return the pods whose reason differs from the one that is computed now."""
        for each in self.pending:
            if isinstance(subject := self._subject(each), str):
                found = subject
            elif subject.unreserved:
                continue
            else:
                found = next(filter(None, map(self._missing, subject.waiting)), "")
                found = found or reasons.reason(subject, self.table, self.devices, 10.0)
            if found != _said(each):
                yield f"{each.name} says {_said(each)!r}, but it is {found!r}"

    def _subject(self, each: Pod) -> Subject | str:
        return read_subject(each, lambda _, name: self.claims.get(name), self.classes)

    def _tainted(self, subject: Subject) -> bool:
        """Return True if the pod would start to use a device that was tainted after its allocation. No claim tolerates
        taints here."""
        results = [result for claim in subject.unreserved for result in claim.results]
        return any(_taints(slice, result) for slice in self.documents["slices"] for result in results)

    def _place(self, subject: Subject) -> bool:
        if any(map(self._missing, subject.waiting)):
            return False
        return Placer(self.table, self.devices, 10).place(subject, SearchTime(0)) is not None

    def _missing(self, claim: ResourceClaim) -> str:
        return claim_checks.missing_class(claim, lambda name: name in self.devices.allocator.inventory.classes)


def _wanted(claim: Document, result: Document) -> Document:
    return next(
        document for _, alternatives in requests_of(claim) for ref, document in alternatives if ref == result["request"]
    )


def _taints(slice: Document, result: DeviceResult) -> bool:
    spec = slice["spec"]
    if (spec["driver"], spec["pool"]["name"]) != (result.driver, result.pool):
        return False
    return any(each["name"] == result.device and each.get("taints") for each in spec["devices"])


def _said(each: Pod) -> str:
    return next((one.message for one in each.status.conditions if one.reason == "Unschedulable"), "")


class Day:
    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = Random(seed)
        self.numbers = iter(range(10_000))
        self.generations = dict.fromkeys(NODES, 0)
        self.faults = 0.0
        self.slowness = 0.0  # seconds that a write or its answer may take
        world.settings = SETTINGS
        world.cluster.before = self._refuse
        world.cluster.after = self._lose

    async def _refuse(self, write: Write) -> None:
        await anyio.sleep(self.random.random() * self.slowness)
        if self.random.random() < self.faults:
            raise self.random.choice([Unavailable("not now"), Conflict("modified concurrently")])

    async def _lose(self, write: Write) -> None:
        await anyio.sleep(self.random.random() * self.slowness)
        if self.random.random() < self.faults / 2:
            raise Unavailable("connection lost")

    async def begin(self) -> None:
        await self.world.add(device_class(), device_class("named", extended=EXTENDED), template("one"))
        await self.world.add(template("two", wish(count=2)), template("all", wish(allocationMode="All")))
        big = {"name": "big", "deviceClassName": DRIVER, "selectors": [_cel(f'device.attributes["{DRIVER}"].big')]}
        small = {"name": "small", "deviceClassName": DRIVER, "count": 1}
        await self.world.add(template("either", {"name": "gpu", "firstAvailable": [big, small]}))
        share = wish(capacity={"requests": {"memory": "3Gi"}}, selectors=[_cel("device.allowMultipleAllocations")])
        await self.world.add(template("share", share))
        for name in NODES[:2]:
            await self.add_node(name)

    async def add_node(self, name: str) -> None:
        await self.world.add(node(name, labels={"zone": name[-1]}))
        await self.publish(name)

    async def publish(self, name: str) -> None:
        """Publish the next generation of a node's devices: whole, partitioned, shared and tainted ones."""
        self.generations[name] += 1
        found = slice_of(name, [self._device(i) for i in range(self.random.randint(1, 4))])
        found["spec"]["pool"]["generation"] = self.generations[name]
        try:
            await self.world.change(found)
        except NotFound:
            await self.world.add(found)

    def _device(self, number: int) -> Document:
        found: Document = {"name": f"gpu-{number}", "attributes": {"big": {"bool": self.random.random() < 0.5}}}
        if self.random.random() < 0.2:
            found["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
        if number == 3:
            found |= {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "8Gi"}}}
        return found

    async def step(self) -> None:
        steps = [self.new_pod] * 6 + [self.end_pod, self.finish_pod] * 2
        steps += [self.new_claim, self.end_claim, self.new_slice, self.toggle_node]
        try:
            await self.random.choice(steps)()
        except DevletError:
            return  # it exists already, or is gone

    async def new_pod(self) -> None:
        more: Document = {}
        if self.random.random() < 0.2:
            more["nodeSelector"] = {"zone": self.random.choice("123")}
        requests = {"cpu": self.random.choice(["500m", "1", "2"])}
        name = f"p{next(self.numbers)}"
        match self.random.randrange(5):
            case 0:
                await self.world.add(pod(name, requests=requests, **more))
            case 1:
                await self.world.add(pod(name, claim=self.random.choice("cd"), requests=requests, **more))
            case 2:
                await self.world.add(pod(name, requests={**requests, EXTENDED: "1"}, **more))
            case _:
                which = self.random.choice(["one", "two", "all", "either", "share"])
                await self.world.add(pod(name, template=which, requests=requests, **more))

    async def _some_pod(self) -> str:
        found = (await self.world.store.list(kinds.PODS)).items
        return str(self.random.choice(found)["metadata"]["name"]) if found else "none"

    async def end_pod(self) -> None:
        await self.world.remove(await self._some_pod())

    async def finish_pod(self) -> None:
        found = await self.world.pod(await self._some_pod())
        if found["spec"].get("nodeName"):
            found["status"]["phase"] = "Succeeded"
            await self.world.store.update(kinds.PODS, found, subresource="status")

    async def new_claim(self) -> None:
        await self.world.add(claim(self.random.choice("cd")))

    async def end_claim(self) -> None:
        await self.world.store.delete(kinds.RESOURCE_CLAIMS, self.random.choice("cd"), "default")

    async def new_slice(self) -> None:
        await self.publish(self.random.choice(NODES))

    async def toggle_node(self) -> None:
        name = self.random.choice(NODES)
        try:
            await self.world.store.delete(kinds.NODES, name)
        except NotFound:
            await self.add_node(name)

    async def snapshot(self) -> Snapshot:
        async def every(resource: Resource) -> list[Document]:
            return list((await self.world.store.list(resource)).items)

        found = {
            "pods": await every(kinds.PODS),
            "claims": await every(kinds.RESOURCE_CLAIMS),
            "nodes": await every(kinds.NODES),
            "slices": await every(kinds.RESOURCE_SLICES),
            "classes": await every(kinds.DEVICE_CLASSES),
        }
        snapshot = Snapshot(found)
        assert not [*snapshot.conflicts(), *snapshot.overfull()]
        return snapshot

    async def rest(self) -> None:
        async def unrest() -> list[str]:
            found = await self.snapshot()
            return [*found.unrest(), *found.stale()]

        await until(unrest, lambda found: not found)


def _cel(expression: str) -> Document:
    return {"cel": {"expression": expression}}


async def live(world: World, seed: int, rounds: int) -> None:
    day = Day(world, seed)
    await day.begin()
    for number in range(rounds):
        async with world.scheduling():
            await day.rest()
            day.faults = 0.1 if number % 2 else 0.0
            day.slowness = 0.02 if number % 3 else 0.0
            for _ in range(day.random.randint(4, 12)):
                await day.step()
            if day.random.random() < 0.7:  # otherwise it would be stopped half-way
                day.faults = 0.0
                await day.rest()
        day.faults = 0.0
        assert "devlet_scheduler_allocation_overlaps_total 0\n" in world.metrics.text(), "there is no other scheduler"
        await world.settled()


@pytest.mark.parametrize("seed", range(2))
async def test_invariants_hold_after_a_random_day(world: World, seed: int) -> None:
    await live(world, seed, 3)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 106))
async def test_invariants_hold_after_a_random_week(world: World, seed: int) -> None:
    await live(world, seed, 12)
