"""devlet and two DRA drivers are killed with SIGKILL at random points while 200 pods with claims come and go.

A cycle takes five rounds: teams of pods come in four parts, and then all of them go, some by force. Each pod has a
claim of its own and one that its team shares; many claims have devices of both drivers, and drivers take their time. In
each round devlet, a driver, both, or all of them are killed, after some answers to the cluster's clients or in the
middle of calls to drivers, and start again in any order. When it has settled, what the drivers have prepared is what
the pods use, no more and no less, and the checkpoint, the views, the pods' statuses, their containers and PodResources
say the same.
"""

import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import grpc
import pytest

from devlet.errors import AlreadyExists, Conflict, NotFound, Unavailable
from devlet.objects.documents import Document
from devlet.state.claim_entry import ClaimEntry
from devlet.testing.dra_script import PREPARE, UNPREPARE
from devlet.testing.node_api import MERGE
from devlet.testing.node_process import NODE, PODS, VIEWS, devices_in_status
from devlet.testing.waiting import until
from devlet.wire.podresources_v1 import api_pb2 as pb
from tests.support.claim_node import CLAIMS, ClaimNode, claim_pod, given
from tests.support.dra_driver_process import DraDriverProcess, Fault, dra_driver_process

pytestmark = pytest.mark.anyio

ROUNDS = max(1, int(os.environ.get("DEVLET_CRASH_ROUNDS", "5")) // 4)  # one takes as long as four of the store
NUMBER = 200
PARTS = 4
TEAM = 5
CALLERS = 8
GPU, NIC = "gpu.example.com", "nic.example.com"
CONFIGURATION = f"""
maxPods: {2 * NUMBER}
timeouts:
  historyAge: 2s
  compactEvery: 1s
  draCall: 5s
  claimReconcile: 2s
"""  # no life is long enough for the usual times
SETTLED = 60.0  # seconds, on a busy machine

Expected = dict[str, dict[str, frozenset[str]]]  # by pod and claim, the CDI devices


class Team:
    """Pods that share a claim, and each have one of their own. What is made may be made again."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.shared = f"{name}-shared"
        self.pods = [f"{name}-{number}" for number in range(TEAM)]
        self.drivers = {claim: chance.choice([(GPU,), (NIC,), (GPU, NIC)]) for claim in (self.shared, *self.pods)}

    def claims(self, pod: str) -> tuple[str, str]:
        return pod, self.shared

    async def create(self, node: ClaimNode) -> None:
        for claim in self.drivers:
            await _unless_there(node.add_claim(claim))
        for pod in self.pods:
            await _unless_there(node.call("POST", PODS, claim_pod(pod, *self.claims(pod))))
        users = {pod: await node.call("GET", f"{PODS}/{pod}") for pod in self.pods}
        for claim, drivers in self.drivers.items():
            results = [given(driver, f"dev-{claim}") for driver in drivers]
            reserved = [_consumer(users[pod]) for pod in self.pods if claim in self.claims(pod)]
            status = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
            await node.call("PATCH", f"{CLAIMS}/{claim}/status", {"status": status}, MERGE)
        for pod, document in users.items():
            if document["spec"].get("nodeName") != NODE:
                await _unless_there(node.bind(pod))

    async def delete(self, node: ClaimNode, *, force: bool) -> None:
        for pod in self.pods:
            await _if_there(node.ask_to_delete(pod, force=force))


Work = Sequence[Callable[[], Awaitable[None]]]


class CountingNode(ClaimNode):
    """Does something after so many answers; 0: never."""

    def __init__(self, root: Path, configuration: str) -> None:
        super().__init__(root, configuration)
        self.left = 0
        self.then: Callable[[], Awaitable[None]] = self.kill

    async def call(
        self, method: str, path: str, body: Document | None = None, type: str = "application/json"
    ) -> Document:
        answer = await super().call(method, path, body, type)
        self.left -= 1
        if self.left == 0:
            await self.then()
        return answer


async def _do(work: Work) -> None:
    """All of it, several at once, as long as the node answers."""
    todo = iter(work)

    async def caller() -> None:
        for act in todo:
            try:
                await act()
            except Unavailable:
                return

    async with anyio.create_task_group() as tasks:
        for _ in range(CALLERS):
            tasks.start_soon(caller)


class Siege:
    """A node, its drivers, and what has to be there when it has settled."""

    def __init__(self, node: CountingNode, stack: AsyncExitStack, chance: random.Random) -> None:
        self._node = node
        self._stack = stack
        self._chance = chance
        self._drivers: dict[str, DraDriverProcess] = {}
        self._down: list[str] = []
        self.teams: list[Team] = []

    async def start_driver(self, name: str) -> None:
        driver = dra_driver_process(self._node.root, name, "--pool", "pool")
        self._drivers[name] = await self._stack.enter_async_context(driver)

    async def create(self, names: list[str]) -> None:
        teams = [Team(name, self._chance) for name in names]
        self.teams += teams
        work = [partial(team.create, self._node) for team in teams]
        await self._attack(work, PREPARE, len(teams) * (4 * TEAM + 2))

    async def delete_all(self) -> None:
        teams, self.teams = self.teams, []
        self._chance.shuffle(teams)
        work = [partial(team.delete, self._node, force=self._chance.random() < 0.25) for team in teams]
        await self._attack(work, UNPREPARE, len(teams) * TEAM)
        for claim in [claim for team in teams for claim in team.drivers]:
            await self._node.call("DELETE", f"{CLAIMS}/{claim}")

    async def _attack(self, work: Work, method: str, answers: int) -> None:
        """Somebody is killed after some of so many answers, or when a driver has heard some calls of the method."""
        await self._slow_down()
        if self._chance.random() < 0.5:
            self._node.left, self._node.then = self._chance.randint(1, answers), self._kill
            await _do(work)
        else:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._kill_after_calls, method)
                await _do(work)
        self._node.left = 0
        await self._start_again()
        if self._chance.random() < 0.25:
            await self._kill()
            await self._start_again()
        await _do(work)
        await self._recover()
        await self._settled()

    async def _kill_after_calls(self, method: str) -> None:
        driver = self._drivers[self._chance.choice([GPU, NIC])]
        await driver.until_asked(method, len(driver.asked(method)) + self._chance.randint(1, 10))
        await self._kill()

    async def _slow_down(self) -> None:
        """So that whoever is killed is in the middle of calls, before or after their work."""
        for driver in self._drivers.values():
            times = [(method, self._chance.choice([0.0, 0.05, 0.5])) for method in (PREPARE, UNPREPARE)]
            faults = [Fault("delay", m, seconds=s, after=self._chance.random() < 0.5) for m, s in times]
            await driver.order(faults=tuple(faults))

    async def _recover(self) -> None:
        for driver in self._drivers.values():
            await driver.order()

    async def _kill(self) -> None:
        victims = ["devlet", GPU, NIC]
        self._down = self._chance.choice(
            [[v] for v in victims] + [["devlet", GPU], ["devlet", NIC], [GPU, NIC], victims]
        )
        self._chance.shuffle(self._down)
        for victim in self._down:
            if victim == "devlet":
                await self._node.kill()
            else:
                self._drivers[victim].program.send_signal(signal.SIGKILL)
                await self._drivers[victim].program.wait()

    async def _start_again(self) -> None:
        self._chance.shuffle(self._down)
        for victim in self._down:
            await (self._node.start() if victim == "devlet" else self.start_driver(victim))
        self._down = []

    # When it has settled

    async def _settled(self) -> None:
        node = self._node
        wanted = {pod for team in self.teams for pod in team.pods}
        pods = await until(
            node.pods, lambda pods: pods.keys() == wanted and all(map(_runs, pods.values())), within=SETTLED
        )
        uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in await node.items(CLAIMS)}
        await self._drivers_have({driver: {uids[c] for c in self._claims_of(driver)} for driver in self._drivers})
        expected = self._expected(uids)
        statuses = {
            name: {c: frozenset(ids) for c, ids in _claims_in_status(each).items()} for name, each in pods.items()
        }
        assert statuses == expected
        assert await in_pod_resources(node) == expected
        await self._file_says(expected, uids, {name: each["metadata"]["uid"] for name, each in pods.items()})
        assert {each["state"] for each in (await node.prepared()).values()} <= {"Prepared"}
        assert await in_containers(node) == {
            name: {uids[claim] for claim in claims} for name, claims in expected.items()
        }

    def _claims_of(self, driver: str) -> list[str]:
        return [claim for team in self.teams for claim, drivers in team.drivers.items() if driver in drivers]

    async def _drivers_have(self, expected: dict[str, set[str]]) -> None:
        async def prepared() -> dict[str, set[str]]:
            return {name: set(driver.prepared) for name, driver in self._drivers.items()}

        await until(prepared, lambda found: found == expected, within=SETTLED)

    def _expected(self, uids: dict[str, str]) -> Expected:
        def devices(team: Team, claim: str) -> frozenset[str]:
            records = [self._drivers[driver].prepared[uids[claim]] for driver in team.drivers[claim]]
            return frozenset(name for each in records for device in each.devices for name in device.cdi_devices or ())

        return {
            pod: {claim: devices(team, claim) for claim in team.claims(pod)} for team in self.teams for pod in team.pods
        }

    async def _file_says(self, expected: Expected, uids: dict[str, str], pods: dict[str, str]) -> None:
        users: dict[str, set[str]] = {}
        for pod, claims in expected.items():
            for claim in claims:
                users.setdefault(claim, set()).add(pods[pod])

        async def on_disk() -> Mapping[str, ClaimEntry]:
            return self._node.claim_checkpoint()

        entries = await until(on_disk, lambda found: found.keys() == users.keys(), within=SETTLED)
        for claim, entry in entries.items():
            assert (entry.uid, set(entry.pods or ())) == (uids[claim], users[claim])
            recorded = {name: self._drivers[name].prepared[entry.uid].devices for name in entry.drivers or {}}
            assert entry.drivers == recorded


@pytest.mark.crash
@pytest.mark.long
@pytest.mark.timeout(600 + 40 * ROUNDS)
@pytest.mark.spec("DN-3.3")
@pytest.mark.spec("DN-3.7")
async def test_what_drivers_have_prepared_is_what_pods_use_whoever_is_killed(root: Path, crash_seed: int) -> None:
    async with AsyncExitStack() as drivers, CountingNode(root, CONFIGURATION) as node:
        siege = Siege(node, drivers, random.Random(crash_seed))
        for name in (GPU, NIC):
            await siege.start_driver(name)
        for number in range(ROUNDS):
            if number % (PARTS + 1) < PARTS:
                await siege.create([f"p{number}-{index}" for index in range(NUMBER // PARTS // TEAM)])
            else:
                await siege.delete_all()
        if siege.teams:
            await siege.delete_all()
        assert not node.claim_checkpoint() and not await node.prepared()
        assert not list((root / "cdi").glob("*.json"))
    assert "Traceback" not in node.log


def _runs(document: Document) -> bool:
    status = document["status"]
    assert status.get("phase") != "Failed", f"{document['metadata']['name']} failed: {status.get('message')}"
    return status.get("phase") == "Running" and len(_claims_in_status(document)) == 2


def _claims_in_status(document: Document) -> dict[str, set[str]]:
    found = devices_in_status(document)
    return {name.removeprefix("claim:").partition("/")[0]: set(ids) for name, ids in found.items()}


def _consumer(pod: Document) -> Document:
    return {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}


async def _unless_there(work: Awaitable[Any]) -> None:
    try:
        await work
    except (AlreadyExists, Conflict):
        return


async def _if_there(work: Awaitable[None]) -> None:
    try:
        await work
    except NotFound:
        return


async def in_containers(node: ClaimNode) -> dict[str, set[str]]:
    """The claims' UIDs that the CDI devices of each pod's container brought it."""
    found: dict[str, set[str]] = {}
    for each in await node.items(f"{VIEWS}/holders"):
        for one in each["status"]["containers"]:
            environment = one.get("oci", {}).get("process", {}).get("env", [])
            found[each["metadata"]["name"]] = {
                text.partition("=")[2] for text in environment if text.startswith("CLAIM_")
            }
    return found


async def in_pod_resources(node: ClaimNode) -> Expected:
    async with _lister(node) as ask:
        answer = await ask(pb.ListPodResourcesRequest(), timeout=60)
    return {
        each.name: {
            claim.claim_name: frozenset(device.name for one in claim.claim_resources for device in one.cdi_devices)
            for container in each.containers
            for claim in container.dynamic_resources
        }
        for each in answer.pod_resources
    }


@asynccontextmanager
async def _lister(node: ClaimNode) -> AsyncIterator[Any]:
    options = [("grpc.max_receive_message_length", 64 << 20)]
    async with grpc.aio.insecure_channel(f"unix:{node.root}/pod-resources/kubelet.sock", options) as channel:
        yield channel.unary_unary(
            "/v1.PodResourcesLister/List",
            request_serializer=pb.ListPodResourcesRequest.SerializeToString,
            response_deserializer=pb.ListPodResourcesResponse.FromString,
        )
