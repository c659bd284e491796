"""Admission by the topology manager."""

from collections.abc import Mapping, Sequence

import pytest

from devlet.errors import DevletError, InvalidInput, NotAllocated, PluginRefused, Unavailable
from devlet.node.reports import Rejection
from devlet.node.topology.hints import Hint, Hints, Mask
from devlet.node.topology.machine import Machine, simulated
from devlet.node.topology.manager import NOT_ALIGNED, NUMA_NODE, TopologyManager, TopologyMetrics, Uncounted
from devlet.objects.documents import view
from devlet.objects.identifiers import ResourceName
from devlet.objects.types.container import Container
from devlet.objects.types.pod import Pod
from devlet.testing.fake_clock import FakeClock

pytestmark = pytest.mark.anyio

GPU = ResourceName("example.com/gpu")

POD = view(
    Pod,
    {
        "metadata": {"name": "train"},
        "spec": {
            "initContainers": [{"name": "fetch"}, {"name": "proxy", "restartPolicy": "Always"}],
            "containers": [{"name": "main"}, {"name": "log"}],
            "ephemeralContainers": [{"name": "debug"}],
        },
    },
)


class Devices:
    """A provider with the same hints for every container, or with those of a list, one after the other."""

    def __init__(
        self,
        diary: list[str],
        hints: Sequence[Hint] | Mapping[str, Sequence[Hint]] | None = None,
        *,
        name: str = "devices",
        fails: tuple[str, DevletError] | None = None,
        clock: FakeClock | None = None,
    ) -> None:
        self._diary = diary
        self._hints = hints
        self._name = name
        self._fails = fails
        self._clock = clock

    def container_hints(self, container: Container) -> Hints:
        self._diary.append(f"{self._name}: hints for {container.name}")
        return {GPU: self._hints.get(container.name) if isinstance(self._hints, Mapping) else self._hints}

    def pod_hints(self) -> Hints:
        self._diary.append(f"{self._name}: hints for the pod")
        assert not isinstance(self._hints, Mapping)
        return {GPU: self._hints}

    async def allocate(self, container: Container, affinity: Mask | None) -> None:
        self._diary.append(f"{self._name}: {container.name} near {affinity}")
        if self._clock:
            await self._clock.advance(0.25)
        if self._fails and self._fails[0] == container.name:
            raise self._fails[1]


class Counted:
    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def admission_requested(self) -> None:
        self.calls.append(("requested",))

    def admission_failed(self) -> None:
        self.calls.append(("failed",))

    def admission_took(self, seconds: float) -> None:
        self.calls.append(("took", seconds))

    def aligned(self, scope: str, boundary: str) -> None:
        self.calls.append(("aligned", scope, boundary))

    def not_aligned(self, scope: str, boundary: str) -> None:
        self.calls.append(("not aligned", scope, boundary))


def manager(
    policy: str,
    scope: str = "container",
    options: Mapping[str, str] = {},
    machine: Machine = simulated(2),
    metrics: Counted | None = None,
    clock: FakeClock | None = None,
) -> TopologyManager:
    return TopologyManager(policy, scope, options, machine, metrics, clock=clock or FakeClock())


async def test_policy_none_allocates_for_each_container_in_order_without_asking_for_hints() -> None:
    diary: list[str] = []
    providers = [Devices(diary), Devices(diary, name="processors")]
    assert await manager("none", "pod").admit(POD, providers) is None
    assert diary == [
        f"{provider}: {container} near None"
        for container in ("fetch", "proxy", "main", "log")
        for provider in ("devices", "processors")
    ]


async def test_scope_container_decides_after_the_previous_container_was_allocated() -> None:
    diary: list[str] = []
    hints = {"fetch": [Hint(0b01, True)], "proxy": [Hint(0b10, True)], "main": [Hint(0b11, False)]}
    assert await manager("best-effort").admit(POD, [Devices(diary, hints)]) is None
    assert diary == [
        "devices: hints for fetch",
        "devices: fetch near 1",
        "devices: hints for proxy",
        "devices: proxy near 2",
        "devices: hints for main",
        "devices: main near 3",
        "devices: hints for log",
        "devices: log near 3",
    ]


async def test_scope_pod_decides_once_for_all_containers() -> None:
    diary: list[str] = []
    assert await manager("restricted", "pod").admit(POD, [Devices(diary, [Hint(0b10, True)])]) is None
    assert diary == [
        "devices: hints for the pod",
        "devices: fetch near 2",
        "devices: proxy near 2",
        "devices: main near 2",
        "devices: log near 2",
    ]


async def test_the_hints_of_all_providers_are_merged() -> None:
    diary: list[str] = []
    near, far = Devices(diary, [Hint(0b01, True)]), Devices(diary, [Hint(0b10, True)])
    assert await manager("restricted").admit(POD, [near, near]) is None
    assert await manager("restricted").admit(POD, [near, far]) == NOT_ALIGNED


def test_the_rejection_has_the_message_of_kubernetes() -> None:
    assert NOT_ALIGNED == Rejection(
        reason="TopologyAffinityError", message="Resources cannot be allocated with Topology locality"
    )


@pytest.mark.parametrize("policy", ["restricted", "single-numa-node"])
async def test_a_container_that_cannot_be_aligned_ends_the_admission(policy: str) -> None:
    diary: list[str] = []
    hints = {"fetch": [Hint(0b01, True)], "proxy": [Hint(0b11, False)]}
    assert await manager(policy).admit(POD, [Devices(diary, hints)]) == NOT_ALIGNED
    assert diary == ["devices: hints for fetch", "devices: fetch near 1", "devices: hints for proxy"]


@pytest.mark.parametrize("policy", ["restricted", "single-numa-node"])
async def test_a_pod_that_cannot_be_aligned_is_allocated_nothing(policy: str) -> None:
    diary: list[str] = []
    assert await manager(policy, "pod").admit(POD, [Devices(diary, [])]) == NOT_ALIGNED
    assert diary == ["devices: hints for the pod"]


@pytest.mark.parametrize("scope", ["container", "pod"])
@pytest.mark.parametrize("policy", ["none", "best-effort", "restricted", "single-numa-node"])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (NotAllocated("no healthy devices present"), "no healthy devices present"),
        (PluginRefused("example.com/gpu", "busy"), "plugin example.com/gpu: busy"),
        (Unavailable("the disk is full"), "the disk is full"),
    ],
)
async def test_an_allocation_that_fails_rejects_the_pod_and_is_the_last_one(
    policy: str, scope: str, error: DevletError, text: str
) -> None:
    diary: list[str] = []
    providers = [Devices(diary, fails=("proxy", error)), Devices(diary, name="later")]
    assert await manager(policy, scope).admit(POD, providers) == Rejection(
        "UnexpectedAdmissionError", f"Allocate failed due to {text}, which is unexpected"
    )
    allocations = [line for line in diary if "near" in line]
    assert [line.partition(" near ")[0] for line in allocations] == ["devices: fetch", "later: fetch", "devices: proxy"]


async def test_an_unexpected_error_is_raised() -> None:
    with pytest.raises(InvalidInput):
        await manager("none").admit(POD, [Devices([], fails=("main", InvalidInput("a bug")))])


@pytest.mark.spec("DP-8.71")
@pytest.mark.parametrize("scope", ["container", "pod"])
@pytest.mark.parametrize("policy", ["none", "best-effort", "restricted", "single-numa-node"])
async def test_a_pod_is_admitted_if_no_provider_has_hints(policy: str, scope: str) -> None:
    assert await manager(policy, scope).admit(POD, []) is None
    assert await manager(policy, scope).admit(POD, [Devices([], None)]) is None


async def test_a_request_and_its_duration_are_counted() -> None:
    counted, clock = Counted(), FakeClock()
    await manager("none", metrics=counted, clock=clock).admit(POD, [Devices([], clock=clock)])
    assert counted.calls == [("requested",), ("took", 1.0)]


@pytest.mark.parametrize(("policy", "failures"), [("none", 0), ("best-effort", 1), ("restricted", 1)])
async def test_rejections_are_counted_under_any_policy_but_none(policy: str, failures: int) -> None:
    counted = Counted()
    await manager(policy, metrics=counted).admit(POD, [Devices([], fails=("log", NotAllocated("none left")))])
    assert counted.calls.count(("failed",)) == failures
    assert [call for call in counted.calls if call[0] == "took"] == [("took", 0.0)]


@pytest.mark.parametrize(("scope", "times"), [("container", 4), ("pod", 1)])
async def test_single_numa_node_counts_what_it_aligned(scope: str, times: int) -> None:
    counted = Counted()
    await manager("single-numa-node", scope, metrics=counted).admit(POD, [Devices([], [Hint(0b01, True)])])
    assert [call for call in counted.calls if "aligned" in str(call[0])] == [("aligned", scope, "numa_node")] * times


@pytest.mark.parametrize("scope", ["container", "pod"])
async def test_single_numa_node_counts_what_it_could_not_align(scope: str) -> None:
    counted = Counted()
    await manager("single-numa-node", scope, metrics=counted).admit(POD, [Devices([], [Hint(0b11, True)])])
    assert counted.calls == [("requested",), ("not aligned", scope, "numa_node"), ("took", 0.0), ("failed",)]


@pytest.mark.parametrize("scope", ["container", "pod"])
async def test_a_failed_allocation_counts_as_neither_aligned_nor_not(scope: str) -> None:
    counted = Counted()
    devices = Devices([], [Hint(0b01, True)], fails=("fetch", NotAllocated("none left")))
    await manager("single-numa-node", scope, metrics=counted).admit(POD, [devices])
    assert counted.calls == [("requested",), ("took", 0.0), ("failed",)]


async def test_other_policies_guarantee_no_alignment_and_count_none() -> None:
    counted = Counted()
    await manager("restricted", metrics=counted).admit(POD, [Devices([], [Hint(0b01, True)])])
    assert counted.calls == [("requested",), ("took", 0.0)]


@pytest.mark.spec("DP-8.67")
@pytest.mark.parametrize(
    ("policy", "scope", "options", "words"),
    [
        ("strict", "container", {}, 'policy "strict": there are none, best-effort, restricted, single-numa-node'),
        ("none", "node", {}, 'scope "node": there are container, pod'),
        ("none", "none", {}, 'scope "none": there are container, pod'),
        ("none", "container", {"speed": "9"}, 'option "speed"'),
        ("none", "container", {"prefer-closest-numa-nodes": "maybe"}, "neither true nor false"),
        ("none", "container", {"max-allowable-numa-nodes": "4"}, "at least 8"),
    ],
)
def test_unknown_policies_scopes_and_options_are_refused_with_what_is_allowed(
    policy: str, scope: str, options: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        manager(policy, scope, options)


@pytest.mark.spec("DP-8.67")
@pytest.mark.parametrize("policy", ["best-effort", "restricted", "single-numa-node"])
def test_more_than_eight_nodes_need_an_option_unless_the_policy_is_none(policy: str) -> None:
    with pytest.raises(InvalidInput, match=r"has 9 NUMA nodes, more than the 8 .* max-allowable-numa-nodes"):
        manager(policy, machine=simulated(9))
    manager(policy, machine=simulated(8))
    manager(policy, options={"max-allowable-numa-nodes": "9"}, machine=simulated(9))
    manager("none", machine=simulated(9))


@pytest.mark.parametrize("policy", ["best-effort", "restricted", "single-numa-node"])
def test_nodes_that_no_mask_can_contain_are_an_error_unless_the_policy_is_none(policy: str) -> None:
    machine = Machine((0, 64))
    with pytest.raises(InvalidInput, match="NUMA node 64"):
        manager(policy, machine=machine)
    manager("none", machine=machine)


@pytest.mark.spec("DP-8.67")
def test_closest_nodes_cannot_be_preferred_without_distances() -> None:
    machine = Machine((0, 1))
    with pytest.raises(InvalidInput, match=r"prefer-closest-numa-nodes: .* distances"):
        manager("best-effort", options={"prefer-closest-numa-nodes": "true"}, machine=machine)
    manager("best-effort", options={"prefer-closest-numa-nodes": "false"}, machine=machine)


async def test_closest_nodes_are_preferred_if_the_option_is_set() -> None:
    ring = Machine((0, 1, 2, 3), ((10, 11, 12, 12), (11, 10, 12, 12), (12, 12, 10, 11), (12, 12, 11, 10)))
    diary: list[str] = []
    close = manager("restricted", "pod", {"prefer-closest-numa-nodes": "true"}, ring)
    assert await close.admit(POD, [Devices(diary, [Hint(0b0110, True), Hint(0b1100, True)])]) is None
    assert diary[1] == f"devices: fetch near {0b1100}"


def test_metrics_can_be_ignored() -> None:
    metrics: TopologyMetrics = Uncounted()
    metrics.admission_requested()
    metrics.admission_failed()
    metrics.admission_took(0.1)
    metrics.aligned("container", NUMA_NODE)
    metrics.not_aligned("pod", NUMA_NODE)
    assert vars(metrics) == {}
