"""Three of devlet's schedulers on a real API server, where there are exactly as many devices as pods: whoever leads is
killed, or stopped for longer than its lease, and what each of them wrote is in the server's audit log."""

import json
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from devlet.cluster.client import Cluster, MergePatch, WatchOptions
from devlet.cluster.remote import kubeconfig as kubeconfigs
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.settings import Settings
from devlet.errors import DevletError, NotFound
from devlet.kit.processes import RunningProcess
from devlet.objects.documents import Document
from devlet.objects.kinds import (
    DEVICE_CLASSES,
    LEASES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from devlet.testing.restarts import Restarts
from devlet.testing.waiting import until
from tests.support.chaos.doubles import Doubles
from tests.support.chaos.worlds import QUICK_LEASES, control_process
from tests.support.peers.control_plane import ControlPlane, control_plane
from tests.support.workloads import device_class, node, pod, slice_of, template

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

LEASE, LEASE_NAMESPACE = "devlet-scheduler", "kube-system"
HOSTS, GPUS = 5, 20
WORK = HOSTS * GPUS  # pods: one for each device
NAMES = ("sa", "sb", "sc")
AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "users": NAMES, "verbs": ["create", "update", "patch", "delete"]},
        {"level": "None"},
    ],
}


@dataclass(slots=True)
class Scene:
    plane: ControlPlane
    cluster: Cluster
    schedulers: Mapping[str, Restarts[RunningProcess]]
    history: list[Document] = field(default_factory=list)  # what the lease said, one after the other

    async def leader(self) -> str:
        try:
            lease = await self.cluster.get(LEASES, LEASE, LEASE_NAMESPACE)
        except NotFound:
            return ""
        return str(lease["spec"].get("holderIdentity") or "").partition("_")[0]

    async def bound(self) -> int:
        return sum("nodeName" in each["spec"] for each in (await self.cluster.list(PODS, "default")).items)

    async def until_bound(self, count: int) -> None:
        await until(self.bound, lambda found: found >= count)

    async def until_another_leads(self, than: str) -> str:
        return await until(self.leader, lambda name: name not in ("", than))

    async def follow_lease(self) -> None:
        options = WatchOptions(field_selector=f"metadata.name={LEASE}")
        while True:
            try:
                async with self.cluster.watch(LEASES, LEASE_NAMESPACE, options) as events:
                    async for event in events:
                        self.history.append(event.object["spec"])
            except DevletError:
                await anyio.sleep(0.1)


@pytest.fixture
async def scene(peers: "Peers", root: Path) -> AsyncIterator[Scene]:
    peers.need("etcd", "kube-apiserver")
    (root / "audit-policy.json").write_text(json.dumps(AUDIT))
    audit = [f"--audit-policy-file={root / 'audit-policy.json'}", f"--audit-log-path={root / 'audit.log'}"]
    users = {name: ["system:masters"] for name in NAMES}
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(
            control_plane(peers.binaries, root, users=users, api_flags=audit, fsync=False)
        )
        connection = kubeconfigs.connection([plane.kubeconfig])
        cluster = await stack.enter_async_context(connected(connection, Settings(qps=0)))
        await furnish(cluster)
        claims = control_process(plane.kubeconfig, root / "claims.log", "--controllers", "resourceclaim")
        await stack.enter_async_context(claims)
        made = {name: scheduler(plane, root, name) for name in NAMES}
        for each in made.values():
            await stack.enter_async_context(each)
        yield Scene(plane, cluster, made)


def scheduler(plane: ControlPlane, root: Path, name: str) -> Restarts[RunningProcess]:
    return control_process(plane.kubeconfig_of(name), root / f"{name}.log", "--identity", name, *QUICK_LEASES)


async def furnish(cluster: Cluster) -> None:
    """Nodes that nobody serves are enough: it is about who decides."""
    await cluster.create(DEVICE_CLASSES, device_class())
    await cluster.create(RESOURCE_CLAIM_TEMPLATES, template("one-gpu"), "default")
    for number in range(HOSTS):
        name = f"n{number}"
        await cluster.create(NODES, node(name))
        await cluster.patch(NODES, name, MergePatch({"spec": {"taints": None}}))  # that it is not ready
        await cluster.create(RESOURCE_SLICES, slice_of(name, GPUS))


@asynccontextmanager
async def creating(cluster: Cluster) -> AsyncIterator[None]:
    """Ten pods a second, while something else happens."""

    async def create() -> None:
        for number in range(WORK):
            document = pod(f"p{number:03}", template="one-gpu", schedulerName="devlet")
            await cluster.create(PODS, document, "default")
            await anyio.sleep(0.1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(create)
        yield


@pytest.mark.spec("KA-9.1a")
async def test_whoever_leads_is_killed_or_stopped_and_no_device_is_given_twice(scene: Scene, root: Path) -> None:
    doubles = Doubles()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(doubles.follow_claims, scene.cluster)
        tasks.start_soon(scene.follow_lease)
        async with creating(scene.cluster):
            for count in (10, 25):
                await scene.until_bound(count)
                await kill_the_leader(scene)
            await scene.until_bound(40)
            await stop_the_leader_for_a_while(scene)
        await scene.until_bound(WORK)
        tasks.cancel_scope.cancel()
    assert doubles.found == {}
    assert len(set(await devices(scene.cluster))) == WORK
    one_leader_at_a_time(scene.history)
    nobody_wrote_without_the_lease(root / "audit.log")


async def kill_the_leader(scene: Scene) -> None:
    leader = await scene.leader()
    await scene.schedulers[leader].kill()
    await scene.until_another_leads(leader)
    await scene.schedulers[leader].start()


async def stop_the_leader_for_a_while(scene: Scene) -> None:
    """It does not know that time has passed, when it goes on."""
    leader = await scene.leader()
    program = scene.schedulers[leader].running
    program.send_signal(signal.SIGSTOP)
    await scene.until_another_leads(leader)
    program.send_signal(signal.SIGCONT)
    log = anyio.Path(program.log)
    await until(partial(log.read_text), lambda text: "leader changed" in text.rpartition("ours=true")[2])
    assert program.returncode is None


async def devices(cluster: Cluster) -> list[tuple[str, str]]:
    """Of all claims: pool and name."""
    claims = (await cluster.list(RESOURCE_CLAIMS, "default")).items
    results = [each for claim in claims for each in claim["status"]["allocation"]["devices"]["results"]]
    return [(each["pool"], each["device"]) for each in results]


def one_leader_at_a_time(history: list[Document]) -> None:
    """Each term has one holder, and terms follow each other."""
    terms = [(each.get("leaseTransitions", 0), each["holderIdentity"]) for each in history if each["holderIdentity"]]
    assert [number for number, _ in terms] == sorted(number for number, _ in terms)
    assert len({number for number, _ in terms}) == len(set(terms)) >= 4


def nobody_wrote_without_the_lease(path: Path) -> None:
    """In the audit log: who writes has written the lease since anybody else did."""
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    renewals = [(each["stageTimestamp"], who(each)) for each in entries if is_lease(each) and succeeded(each)]
    writes = [(each["requestReceivedTimestamp"], each) for each in entries if not is_lease(each) and succeeded(each)]
    holder, queue = "", sorted(renewals)
    for moment, entry in sorted(writes, key=lambda pair: pair[0]):
        while queue and queue[0][0] <= moment:
            holder = queue.pop(0)[1]
        # The answer to a renewal may be written down a moment after the leader has read it.
        assert who(entry) == holder or (queue and queue[0][1] == who(entry) and starts(entries, queue[0]) < moment), (
            moment,
            holder,
            entry["requestURI"],
            who(entry),
        )
    assert {who(entry) for _, entry in writes} <= set(NAMES)
    assert sum(entry["objectRef"].get("subresource") == "binding" for _, entry in writes) == WORK


def starts(entries: list[Document], renewal: tuple[str, str]) -> str:
    """When the request for the renewal came."""
    return next(
        str(each["requestReceivedTimestamp"])
        for each in entries
        if is_lease(each) and (each["stageTimestamp"], who(each)) == renewal
    )


def who(entry: Document) -> str:
    return str(entry["user"]["username"])


def is_lease(entry: Document) -> bool:
    return bool(entry["objectRef"]["resource"] == "leases")


def succeeded(entry: Document) -> bool:
    return bool(entry["stage"] == "ResponseComplete" and entry["responseStatus"]["code"] < 300)
