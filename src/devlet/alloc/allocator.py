"""The allocator: devices of a node for some claims, or why not.

One allocator serves all nodes and stays: pools of a node are gathered once per revision of the inventory, selectors
are evaluated once per slice. Nothing here changes the inventory; whoever uses an answer tells the inventory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from devlet.alloc.constraints import Constraint, make_constraint
from devlet.alloc.features import ALL_FEATURES, Features, Rules
from devlet.alloc.inventory import DeviceEntry, Inventory
from devlet.alloc.order import best_fit
from devlet.alloc.pools import Pool, PoolSlice, gather
from devlet.alloc.requests import RESULTS_MAX, Alternative, Request, claim_name, read_request
from devlet.alloc.search import Chosen, Exhausted, Limits, Search
from devlet.alloc.selectors import SelectorFailure, Selectors
from devlet.alloc.steps import Step
from devlet.alloc.taints import untolerated
from devlet.errors import InvalidInput
from devlet.objects.claim import ResourceClaim
from devlet.objects.identifiers import NodeName
from devlet.objects.node import Node

__all__ = ["Allocator", "Fit", "NoFit", "Outcome"]


@dataclass(frozen=True, slots=True)
class Fit:
    """The devices of each claim, in the order of the claims; `steps` is what the search took."""

    node: Node
    claims: tuple[ResourceClaim, ...]
    chosen: tuple[tuple[Chosen, ...], ...]
    steps: int = 0


@dataclass(frozen=True, slots=True)
class NoFit:
    """It does not fit on this node. If `is_exhausted` the search was given up, so it may fit all the same."""

    reason: str = ""
    is_exhausted: bool = False
    steps: int = 0


Outcome = Fit | NoFit


class Layout:
    """The pools of a node, as of one revision of the inventory."""

    def __init__(self, node: Node, pools: list[Pool], revision: int) -> None:
        self.node = node
        self.pools = pools
        self.revision = revision
        self.slices: list[PoolSlice] = [slice for pool in pools if pool.is_usable for slice in pool.slices]

    @cached_property
    def by_key(self) -> dict[tuple[str, str], Pool]:
        return {pool.key: pool for pool in self.pools}


class Allocator:
    """`Rules.reference()` makes every answer the reference's."""

    def __init__(self, inventory: Inventory, features: Features = ALL_FEATURES, rules: Rules = Rules()) -> None:
        self.inventory = inventory
        self.features = features
        self.rules = rules
        self.selectors = Selectors(lists=features.list_type_attributes)
        self._layouts: dict[NodeName, Layout] = {}

    def allocate(self, node: Node, claims: Sequence[ResourceClaim], limits: Limits = Limits()) -> Outcome:
        """Devices for all claims at once. Raises InvalidInput if the claims cannot be allocated on any node."""
        layout = self.layout(node)
        steps: list[list[list[Step]]] = []
        constraints: list[list[Constraint]] = []
        for i, claim in enumerate(claims):
            steps.append(self._steps(i, claim, layout))
            constraints.append(self._constraints(claim))
        search = Search(steps, constraints, layout.by_key, self.features, self.rules, limits)
        try:
            found = search.run()
        except Exhausted:
            return NoFit(f"the search was given up after {search.steps} steps", True, search.steps)
        if found:
            return Fit(node, tuple(claims), tuple(map(tuple, search.results)), search.steps)
        if any(pool.problem and not pool.is_incomplete for pool in layout.pools):
            return NoFit("invalid resource pools were encountered", steps=search.steps)
        return NoFit(steps=search.steps)

    def layout(self, node: Node) -> Layout:
        """The node's pools. A node with other labels is another node."""
        layout = self._layouts.get(node.name)
        if layout is None or layout.revision != self.inventory.revision or layout.node is not node:
            pools = gather(self.inventory, node, self.features, self.rules)
            layout = self._layouts[node.name] = Layout(node, pools, self.inventory.revision)
        return layout

    def read(self, claim: ResourceClaim, index: int) -> Request:
        return read_request(claim, claim.spec.devices.requests[index], self.inventory, self.features, self.rules)

    def _constraints(self, claim: ResourceClaim) -> list[Constraint]:
        made: list[Constraint] = []
        for i, wanted in enumerate(claim.spec.devices.constraints):
            constraint = make_constraint(
                wanted, exact=self.rules.exact_constraints, lists=self.features.list_type_attributes
            )
            if constraint is None:
                text = "empty constraint (unsupported constraint type?)"
                raise InvalidInput(f"claim {claim_name(claim)}, constraint #{i}: {text}")
            made.append(constraint)
        return made

    def _steps(self, index: int, claim: ResourceClaim, layout: Layout) -> list[list[Step]]:
        made = []
        for position in range(len(claim.spec.devices.requests)):
            request = self.read(claim, position)
            made.append([self._step(index, position, claim, request, each, layout) for each in request.alternatives])
        least = sum(min(step.number for step in alternatives) for alternatives in made)
        if least > RESULTS_MAX:
            text = f"number of requested devices {least} exceeds the claim limit of {RESULTS_MAX}"
            raise InvalidInput(f"claim {claim_name(claim)}: {text}")
        return made

    def _step(
        self, index: int, position: int, claim: ResourceClaim, request: Request, wanted: Alternative, layout: Layout
    ) -> Step:
        where = f"claim {claim_name(claim)}, request {wanted.name}"
        step = Step(index, position, request.name, wanted, wanted.count, [], {}, where, self.rules.strict_capacity)
        if wanted.is_all:
            self._take_all(step, claim, layout)
        else:
            self._take_any(step, claim, layout)
        return step

    def _take_any(self, step: Step, claim: ResourceClaim, layout: Layout) -> None:
        """Candidates that could be given, and those whose selectors fail."""
        wanted = step.alternative
        for slice in layout.slices:
            entry = slice.entry
            match = self.selectors.match(entry, wanted.selectors)
            usable = slice.reachable if wanted.admin_access else slice.reachable & ~entry.taken
            if not self.features.device_binding_and_status:
                usable &= ~entry.bindings
            failing = 0 if self.rules.errors_do_not_match else match.failing & usable
            devices = entry.chosen(match.matching & usable | failing)
            if entry.tainted and self.features.device_taints:
                devices = [device for device in devices if not untolerated(device.device, wanted.tolerations)]
            step.candidates += devices
            if failing:
                self._note_failures(step, claim, entry.chosen(failing), match.failures)
        if self.rules.best_fit:
            step.candidates = best_fit(step.candidates)

    def _note_failures(
        self, step: Step, claim: ResourceClaim, devices: list[DeviceEntry], failures: Mapping[int, SelectorFailure]
    ) -> None:
        step.failures = {**step.failures, **{d: failure_text(step, claim, failures[d.bit]) for d in devices}}

    def _take_all(self, step: Step, claim: ResourceClaim, layout: Layout) -> None:
        """All devices that match and have enough capacity; an error if that cannot be told."""
        wanted = step.alternative
        for pool in layout.pools:
            if pool.problem:
                if not self.rules.only_matching_pools or self._might_match(pool, wanted):
                    state = "being updated" if pool.is_incomplete else "invalid"
                    raise InvalidInput(
                        f"{step.where}: asks for all devices, but resource pool {pool.name} is currently {state}"
                    )
                continue
            for slice in pool.slices:
                step.candidates += self._all_of(step, claim, slice)
        step.number = len(step.candidates)

    def _all_of(self, step: Step, claim: ResourceClaim, slice: PoolSlice) -> list[DeviceEntry]:
        entry = slice.entry
        match = self.selectors.match(entry, step.alternative.selectors)
        visible = ~entry.bindings if not self.features.device_binding_and_status else -1
        chosen = []
        failing = 0 if self.rules.errors_do_not_match else match.failing
        for device in entry.chosen((match.matching & slice.reachable | failing) & visible):
            if failing >> device.bit & 1:
                raise InvalidInput(failure_text(step, claim, match.failures[device.bit]))
            if self._has_capacity(step, device):
                chosen.append(device)
        return chosen

    def _has_capacity(self, step: Step, device: DeviceEntry) -> bool:
        if not self.features.consumable_capacity:
            return True
        amounts = step.amounts(device)
        if isinstance(amounts, str):
            return False
        consumed = device.consumed or {}
        return (step.is_admin and self.rules.admin_is_exempt) or all(
            consumed.get(amount.name, 0) + amount.consumed.nano <= amount.limit for amount in amounts
        )

    def _might_match(self, pool: Pool, wanted: Alternative) -> bool:
        """Whether a slice of a broken pool, as far as it is known, has a device that would match."""
        for entry in self.inventory.slices_of(pool.key):
            match = self.selectors.match(entry, wanted.selectors)
            if match.matching or match.failing:
                return True
        return False


def failure_text(step: Step, claim: ResourceClaim, failure: SelectorFailure) -> str:
    """As in messages: whose selector it is, and what CEL says."""
    whose = f"class {step.alternative.device_class.name}" if failure.of_class else f"claim {claim_name(claim)}"
    return f"{whose}: selector #{failure.index}: {failure.text}"
