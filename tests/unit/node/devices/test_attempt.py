from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from devlet.errors import NotAllocated, PluginRefused, Unavailable
from devlet.node.devices.allocations import Allocations
from devlet.node.devices.attempt import Attempt
from devlet.node.devices.inventory import Inventory, Moment
from devlet.node.devices.selection import Ask
from devlet.node.topology.hints import Hint
from devlet.objects.identifiers import ContainerName, DeviceID, ResourceName
from devlet.objects.types.container import Container, ResourceRequirements
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import ExtendedResourceClaimStatus, ExtendedResourceMapping, Pod, PodSpec, PodStatus
from devlet.plugins.device_plugin import Offer
from devlet.plugins.devices import Device, Grant, Options

pytestmark = pytest.mark.anyio

A = ResourceName("vendor.com/a")
B = ResourceName("vendor.com/b")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MOMENT = Moment(NOW, 0.0)


@dataclass
class Node:
    """An inventory with the answers of its plugins."""

    inventory: Inventory = field(default_factory=lambda: Inventory(300))
    allocations: Allocations = field(default_factory=Allocations)
    calls: list[object] = field(default_factory=list)
    preference: Callable[[Ask], Sequence[str]] = lambda ask: ()
    refuse: set[ResourceName] = field(default_factory=set)
    full_disk: bool = False
    saves: int = 0

    def plugin(self, resource: ResourceName, devices: str, *, prefers: bool = False, **nodes: tuple[int, ...]) -> None:
        offer = Offer(resource, Path("/p") / resource.replace("/", "-"))
        instance, _ = self.inventory.register(offer, Options(preferred_allocation=prefers), None, MOMENT)
        listed = [Device(DeviceID(id), nodes=nodes.get(id, ())) for id in devices.split()]
        self.inventory.report(instance, listed, MOMENT)

    def attempt(self, pod: Pod) -> Attempt:
        return Attempt(pod, self.inventory, self.allocations, self, self.save, machine_nodes=(0, 1), now=lambda: NOW)

    async def admit(self, pod: Pod) -> dict[str, set[str]]:
        """Admit the pod and return the devices of each container."""
        attempt = self.attempt(pod)
        try:
            for container in (*pod.spec.init_containers, *pod.spec.containers):
                await attempt.allocate(container, None)
            await attempt.commit()
        finally:
            attempt.undo()
        return self.held(pod)

    def held(self, pod: Pod) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for each in self.allocations.of_pod(pod.uid):
            found.setdefault(each.container, set()).update(each.devices)
        return found

    async def allocate(self, resource: ResourceName, devices: Sequence[DeviceID]) -> Grant:
        self.calls.append((resource, tuple(devices)))
        await anyio.lowlevel.checkpoint()
        if resource in self.refuse:
            raise PluginRefused(resource, "no")
        return Grant(env={resource: ",".join(devices)})

    async def preferred(self, resource: ResourceName, ask: Ask) -> tuple[DeviceID, ...]:
        self.calls.append(ask)
        return tuple(map(DeviceID, self.preference(ask)))

    async def save(self) -> None:
        self.saves += 1
        if self.full_disk:
            raise Unavailable("no space left on device")


def container(name: str, *, sidecar: bool = False, **limits: str) -> Container:
    names = {"a": A, "b": B}
    return Container(
        name=ContainerName(name),
        resources=ResourceRequirements(limits={names.get(key, key): value for key, value in limits.items()}),
        restart_policy="Always" if sidecar else None,
    )


def pod(
    *containers: Container, init: Sequence[Container] = (), uid: str = "u1", status: PodStatus = PodStatus()
) -> Pod:
    return Pod(
        metadata=ObjectMeta(uid=uid, name=uid),
        spec=PodSpec(containers=containers, init_containers=tuple(init)),
        status=status,
    )


@pytest.fixture
def node() -> Node:
    made = Node()
    made.plugin(A, "a0 a1")
    made.plugin(B, "b0")
    return made


@pytest.mark.spec("DP-8.23")
async def test_each_resource_is_allocated_and_others_are_ignored(node: Node) -> None:
    one = pod(container("main", a="2", b="1", cpu="4"))
    assert await node.admit(one) == {"main": {"a0", "a1", "b0"}}
    assert node.allocations.counts() == {A: 2, B: 1} and node.saves == 1


@pytest.mark.spec("DP-8.24")
@pytest.mark.spec("DP-8.25")
async def test_a_refused_pod_leaves_no_trace_and_does_not_affect_other_resources(node: Node) -> None:
    await node.admit(pod(container("main", a="2")))
    with pytest.raises(NotAllocated, match="Requested: 1, Available: 0"):
        await node.admit(pod(container("main", b="1"), container("second", a="1"), uid="u2"))
    assert node.allocations.counts() == {A: 2} and node.saves == 1
    assert await node.admit(pod(container("main", b="1"), uid="u3")) == {"main": {"b0"}}


@pytest.mark.spec("DP-9.09")
async def test_devices_are_freed_if_their_plugin_refuses(node: Node) -> None:
    node.refuse = {B}
    with pytest.raises(PluginRefused):
        await node.admit(pod(container("main", a="1", b="1")))
    assert node.allocations.counts() == {}


async def test_devices_are_not_allocated_if_the_checkpoint_cannot_be_written(node: Node) -> None:
    node.full_disk = True
    with pytest.raises(Unavailable):
        await node.admit(pod(container("main", a="1")))
    assert node.allocations.counts() == {} and len(node.allocations) == 0


@pytest.mark.spec("DP-8.27")
async def test_devices_of_a_resource_that_is_no_longer_registered_cannot_be_allocated(node: Node) -> None:
    one = pod(container("main", a="1"))
    await node.admit(one)
    node.inventory = Inventory(300)
    with pytest.raises(NotAllocated, match=r"cannot allocate unregistered device vendor\.com/a"):
        await node.admit(one)


async def test_an_admitted_pod_is_admitted_again_without_a_call(node: Node) -> None:
    one = pod(container("main", a="1"))
    await node.admit(one)
    assert await node.admit(one) == {"main": {"a0"}}
    assert len(node.calls) == 1 and node.saves == 1


async def test_a_changed_request_is_refused_and_keeps_the_devices(node: Node) -> None:
    await node.admit(pod(container("main", a="1")))
    with pytest.raises(NotAllocated, match="from 1 to 2"):
        await node.admit(pod(container("main", a="2")))
    assert node.allocations.counts() == {A: 1}


@pytest.mark.spec("DP-9.21")
async def test_a_limit_of_zero_requests_nothing(node: Node) -> None:
    assert await node.admit(pod(container("main", a="0"))) == {} and not node.calls


@pytest.mark.spec("DP-8.30")
async def test_init_containers_hand_their_devices_down(node: Node) -> None:
    init = [container("init1", a="1"), container("init2", a="2")]
    held = await node.admit(pod(container("one", a="1"), container("two", a="1"), init=init))
    assert held["init1"] <= held["init2"] and held["one"] | held["two"] <= held["init2"]
    assert not held["one"] & held["two"]


@pytest.mark.spec("DP-8.31")
async def test_sidecars_keep_their_devices() -> None:
    node = Node()
    node.plugin(A, "a0 a1 a2 a3 a4 a5")
    init = [container("init", a="3"), container("s1", a="1", sidecar=True), container("s2", a="2", sidecar=True)]
    held = await node.admit(pod(container("c1", a="1"), container("c2", a="2"), init=init))
    alone = [held[name] for name in ("s1", "s2", "c1", "c2")]
    assert sum(map(len, alone)) == len(set().union(*alone)) == 6


@pytest.mark.spec("DP-8.34")
async def test_a_resource_that_a_claim_provides_is_not_allocated(node: Node) -> None:
    mapping = ExtendedResourceMapping(container_name="main", resource_name=A, request_name="r")
    claim = ExtendedResourceClaimStatus(resource_claim_name="c", request_mappings=(mapping,))
    claimed = pod(container("main", a="1"), status=PodStatus(extended_resource_claim_status=claim))
    assert await node.admit(claimed) == {} and not node.calls


@pytest.mark.spec("DP-9.07")
async def test_a_plugin_is_asked_again_if_another_pod_took_what_it_preferred() -> None:
    node = Node()
    node.plugin(A, "a0 a1 a2 a3", prefers=True)

    def steals(ask: Ask) -> Sequence[str]:
        best = ask.available[-1]
        if not node.allocations.taken(A):
            node.allocations.reserve(pod(uid="thief").uid, A, [best])
        return [best]

    node.preference = steals
    assert await node.admit(pod(container("main", a="1"))) == {"main": {"a2"}}
    assert len([call for call in node.calls if isinstance(call, Ask)]) == 2


async def test_a_plugin_that_prefers_unknown_devices_is_not_asked_forever() -> None:
    node = Node()
    node.plugin(A, "a0 a1 a2", prefers=True)
    node.preference = lambda ask: ["nonsense", "a9"]
    assert await node.admit(pod(container("main", a="2"))) == {"main": {"a0", "a1"}}


async def test_each_of_a_hundred_concurrent_pods_gets_a_device_or_is_refused() -> None:
    node = Node()
    node.plugin(A, " ".join(f"d{i}" for i in range(64)), prefers=True)
    node.preference = lambda ask: ask.available[:1]
    refused = []

    async def one(number: int) -> None:
        try:
            await node.admit(pod(container("main", a="1"), uid=f"u{number}"))
        except NotAllocated:
            refused.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(100):
            tasks.start_soon(one, number)
    assert len(refused) == 36 and node.allocations.counts() == {A: 64} and len(node.allocations) == 64


async def test_a_cancelled_attempt_frees_everything(node: Node) -> None:
    attempt = node.attempt(pod(container("main", a="2")))
    await attempt.allocate(container("main", a="2"), None)
    assert node.allocations.counts() == {A: 2} and not attempt.undo()
    assert node.allocations.counts() == {}


@pytest.mark.spec("DP-8.47")
async def test_hints_are_per_resource_and_exclude_devices_of_other_pods() -> None:
    node = Node()
    node.plugin(A, "a0 a1", a0=(0,), a1=(1,))
    node.plugin(B, "b0 b1", b0=(0,), b1=(1,))
    wants = container("main", a="1", b="2")
    assert node.attempt(pod(wants)).container_hints(wants) == {
        A: (Hint(1, True), Hint(2, True), Hint(3, False)),
        B: (Hint(3, True),),
    }
    await node.admit(pod(container("main", a="1"), uid="other"))
    assert node.attempt(pod(wants)).container_hints(wants)[A] == (Hint(2, True), Hint(3, False))


async def test_hints_of_a_container_include_what_its_pod_can_reuse() -> None:
    node = Node()
    node.plugin(A, "a0 a1", a0=(0,), a1=(1,))
    init, main = container("init", a="1"), container("main", a="2")
    attempt = node.attempt(pod(main, init=[init]))
    await attempt.allocate(init, None)
    assert attempt.container_hints(main) == {A: (Hint(3, True),)}
    attempt.undo()


@pytest.mark.spec("DP-8.46")
async def test_hints_of_a_pod_are_for_its_peak_request() -> None:
    node = Node()
    node.plugin(A, "a0 a1", a0=(0,), a1=(1,))
    whole = pod(container("one", a="1"), init=[container("init", a="2")])
    assert node.attempt(whole).pod_hints() == {A: (Hint(3, True),)}
    assert node.attempt(pod(container("one", b="1"))).pod_hints() == {}


@pytest.mark.spec("DP-8.29")
async def test_pods_that_end_during_a_call_do_not_affect_the_choice() -> None:
    node = Node()
    node.plugin(A, "a0 a1 a2", prefers=True)
    other = pod(container("main", a="1"), uid="other")
    await node.admit(other)

    def ends(ask: Ask) -> Sequence[str]:
        for allocation in node.allocations.of_pod(other.uid):
            node.allocations.remove(allocation)
        return ask.available

    node.preference = ends
    assert await node.admit(pod(container("main", a="1"))) == {"main": {"a1"}}


@pytest.mark.spec("DP-9.06")
async def test_concurrent_pods_do_not_reuse_each_others_devices() -> None:
    node = Node()
    node.plugin(A, "a0 a1 a2 a3")
    pods = [pod(container("main", a="2"), init=[container("init", a="1")], uid=f"u{number}") for number in range(2)]
    async with anyio.create_task_group() as tasks:
        for each in pods:
            tasks.start_soon(node.admit, each)
    first, second = (node.held(each)["main"] for each in pods)
    assert not first & second and all(node.held(each)["init"] <= node.held(each)["main"] for each in pods)


@pytest.mark.spec("DP-9.08")
async def test_a_failure_frees_only_its_own_reservations(node: Node) -> None:
    waiting = node.attempt(pod(container("main", a="1"), uid="waiting"))
    await waiting.allocate(container("main", a="1"), None)
    node.refuse = {B}
    with pytest.raises(PluginRefused):
        await node.admit(pod(container("main", a="1", b="1"), uid="failing"))
    assert node.allocations.owner(A, DeviceID("a0")) == "waiting" and node.allocations.counts() == {A: 1}
    await waiting.commit()
    assert node.held(pod(uid="waiting")) == {"main": {"a0"}}
