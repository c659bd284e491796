"""Admission of a pod by topology: collect the providers' hints, decide by the policy, let the providers allocate.

The topology manager keeps no state: providers get the affinity as an argument. After a rejection, providers free what
they have allocated.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol, TypeVar

from devlet.errors import InvalidInput, NotAllocated, PluginError, Unavailable
from devlet.kit.clock import Clock, SystemClock
from devlet.node.reports import Rejection
from devlet.node.topology import masks
from devlet.node.topology.hints import Hints, Mask, Provider
from devlet.node.topology.machine import Machine
from devlet.node.topology.options import MAX_NODES, PREFER_CLOSEST, Options, parse
from devlet.node.topology.policies import Decision, Policy, decide
from devlet.objects.types.container import Container
from devlet.objects.types.pod import Pod

__all__ = ["NOT_ALIGNED", "NUMA_NODE", "Scope", "TopologyManager", "TopologyMetrics", "Uncounted"]

E = TypeVar("E", bound=StrEnum)

NOT_ALIGNED = Rejection("TopologyAffinityError", "Resources cannot be allocated with Topology locality")
NUMA_NODE = "numa_node"  # the boundary that devices are aligned to


class Scope(StrEnum):
    """Whether hints are merged per container, or for the whole pod."""

    CONTAINER = "container"
    POD = "pod"


class TopologyMetrics(Protocol):
    def admission_requested(self) -> None: ...

    def admission_failed(self) -> None:
        """A pod was rejected, under any policy but none."""
        ...

    def admission_took(self, seconds: float) -> None: ...

    def aligned(self, scope: str, boundary: str) -> None:
        """A container, or a pod under scope pod, has all its devices within the boundary, guaranteed by policy."""
        ...

    def not_aligned(self, scope: str, boundary: str) -> None: ...


class Uncounted:
    """Metrics that are not counted."""

    def admission_requested(self) -> None:
        pass

    def admission_failed(self) -> None:
        pass

    def admission_took(self, seconds: float) -> None:
        pass

    def aligned(self, scope: str, boundary: str) -> None:
        pass

    def not_aligned(self, scope: str, boundary: str) -> None:
        pass


class TopologyManager:
    """Policy, scope and options are strings as in flags. Raise InvalidInput for bad ones."""

    def __init__(
        self,
        policy: str,
        scope: str,
        options: Mapping[str, str],
        machine: Machine,
        metrics: TopologyMetrics | None = None,
        *,
        clock: Clock = SystemClock(),
    ) -> None:
        self.policy = _choice(Policy, "policy", policy)
        self.scope = _choice(Scope, "scope", scope)
        self.machine = machine
        self._options = parse(options)
        _check_machine(self.policy, self._options, machine)
        self._metrics = metrics or Uncounted()
        self._clock = clock

    async def admit(self, pod: Pod, providers: Sequence[Provider]) -> Rejection | None:
        """Return None if the pod is admitted: all providers have allocated for all containers."""
        self._metrics.admission_requested()
        began = self._clock.monotonic()
        try:
            rejection = await self._admit(pod, providers)
        finally:
            self._metrics.admission_took(self._clock.monotonic() - began)
        if rejection and self.policy is not Policy.NONE:
            self._metrics.admission_failed()
        return rejection

    async def _admit(self, pod: Pod, providers: Sequence[Provider]) -> Rejection | None:
        if self.policy is Policy.NONE:
            return await _allocate(pod.containers, providers, None)
        if self.scope is Scope.POD:
            return await self._admit_together(pod.containers, [p.pod_hints() for p in providers], providers)
        for container in pod.containers:
            hints = [provider.container_hints(container) for provider in providers]
            if rejection := await self._admit_together((container,), hints, providers):
                return rejection
        return None

    async def _admit_together(
        self, containers: Sequence[Container], hints: Sequence[Hints], providers: Sequence[Provider]
    ) -> Rejection | None:
        """Admit all containers with the same affinity."""
        decision = decide(self.policy, hints, self.machine, prefer_closest=self._options.prefer_closest)
        rejection = await _allocate(containers, providers, decision.affinity) if decision.admitted else NOT_ALIGNED
        if self.policy is Policy.SINGLE_NUMA_NODE:
            self._count(decision, rejection)
        return rejection

    def _count(self, decision: Decision, rejection: Rejection | None) -> None:
        if not decision.admitted:
            self._metrics.not_aligned(self.scope, NUMA_NODE)
        elif rejection is None:
            self._metrics.aligned(self.scope, NUMA_NODE)


async def _allocate(
    containers: Sequence[Container], providers: Sequence[Provider], affinity: Mask | None
) -> Rejection | None:
    try:
        for container in containers:
            for provider in providers:
                await provider.allocate(container, affinity)
    except (NotAllocated, PluginError, Unavailable) as error:
        return Rejection("UnexpectedAdmissionError", f"Allocate failed due to {error}, which is unexpected")
    return None


def _choice(kind: type[E], noun: str, text: str) -> E:
    try:
        return kind(text)
    except ValueError:
        raise InvalidInput(f'unknown topology manager {noun} "{text}": there are {", ".join(kind)}') from None


def _check_machine(policy: Policy, options: Options, machine: Machine) -> None:
    if options.prefer_closest and not machine.distances:
        raise InvalidInput(
            f"topology manager option {PREFER_CLOSEST}: the distances of this machine's NUMA nodes are unknown;"
            " leave the option out"
        )
    if policy is Policy.NONE:
        return
    if len(machine.nodes) > options.max_nodes:
        raise InvalidInput(
            f"topology manager policy {policy}: this machine has {len(machine.nodes)} NUMA nodes, more than the"
            f" {options.max_nodes} that are allowed; raise the option {MAX_NODES}, or use policy {Policy.NONE}"
        )
    masks.bits(machine.nodes)
