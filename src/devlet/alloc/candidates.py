"""The devices of a node that a request may get, in the order in which the search tries them."""

from collections.abc import Callable, Mapping, Sequence

from devlet.alloc.features import Features, Rules
from devlet.alloc.inventory import DeviceEntry, Inventory, SliceEntry
from devlet.alloc.layout import Layout
from devlet.alloc.order import best_fit
from devlet.alloc.pools import Pool, PoolSlice
from devlet.alloc.requests import Alternative, Request, claim_name
from devlet.alloc.selectors import SelectorFailure, Selectors
from devlet.alloc.steps import Step
from devlet.alloc.taints import untolerated
from devlet.errors import InvalidInput
from devlet.objects.types.claim import ResourceClaim

__all__ = ["Candidates", "failure_text"]


class Candidates:
    def __init__(self, inventory: Inventory, selectors: Selectors, features: Features, rules: Rules) -> None:
        self._inventory = inventory
        self._selectors = selectors
        self._features = features
        self._rules = rules

    def steps(
        self,
        index: int,
        claim: ResourceClaim,
        requests: Sequence[Request],
        layout: Layout,
        give_up: Callable[[], bool] | None = None,
    ) -> list[list[Step]]:
        """Return the steps of each request of the claim with this index. Raises Interrupted."""
        self._evaluate(requests, layout, give_up)
        return [
            [self._step(index, position, claim, request, wanted, layout) for wanted in request.alternatives]
            for position, request in enumerate(requests)
        ]

    def _evaluate(self, requests: Sequence[Request], layout: Layout, give_up: Callable[[], bool] | None) -> None:
        """Evaluate all selectors on all slices of the node, so that later lookups find the results."""
        for request in requests:
            for wanted in request.alternatives:
                new = [slice.entry for slice in layout.slices if wanted.selectors not in slice.entry.matches]
                if new:
                    self._selectors.match_many(new, wanted.selectors, give_up)

    def _step(
        self, index: int, position: int, claim: ResourceClaim, request: Request, wanted: Alternative, layout: Layout
    ) -> Step:
        where = f"claim {claim_name(claim)}, request {wanted.name}"
        step = Step(index, position, request.name, wanted, wanted.count, [], {}, where, self._rules.strict_capacity)
        if wanted.is_all:
            self._take_all(step, claim, layout)
        else:
            self._take_any(step, claim, layout)
        return step

    def _take_any(self, step: Step, claim: ResourceClaim, layout: Layout) -> None:
        """Collect the devices that the request could get, and those whose selectors fail."""
        wanted = step.alternative
        for slice in layout.slices:
            entry = slice.entry
            match = self._selectors.match(entry, wanted.selectors)
            free = -1 if wanted.admin_access else ~entry.taken
            if not self._features.device_binding_and_status:
                free &= ~entry.bindings
            usable = free & slice.reachable
            failing = 0 if self._rules.errors_do_not_match else match.failing & free  # evaluated before it is reached
            if entry.tainted & usable and self._features.device_taints:
                usable &= ~self._untolerated(entry, wanted)  # also evaluated, so its failures stay
            step.candidates += entry.chosen(match.matching & usable | failing)
            if failing:
                self._note_failures(step, claim, entry.chosen(failing), match.failures)
        if self._rules.best_fit:
            step.candidates = best_fit(step.candidates)

    def _untolerated(self, entry: SliceEntry, wanted: Alternative) -> int:
        tainted = entry.chosen(entry.tainted)
        return sum(1 << each.bit for each in tainted if untolerated(each.device, wanted.tolerations))

    def _note_failures(
        self, step: Step, claim: ResourceClaim, devices: list[DeviceEntry], failures: Mapping[int, SelectorFailure]
    ) -> None:
        for device in devices:
            step.failures[device] = failure_text(step.alternative, claim, failures[device.bit])

    def _take_all(self, step: Step, claim: ResourceClaim, layout: Layout) -> None:
        """Collect all matching devices with enough capacity. If that cannot be determined, record an error."""
        for pool in layout.pools:
            if pool.problem and (not self._rules.only_matching_pools or self._might_match(pool, step.alternative)):
                state = "being updated" if pool.is_incomplete else "invalid"
                text = f"asks for all devices, but resource pool {pool.name} is currently {state}"
                raise InvalidInput(f"{step.where}: {text}")
            for slice in pool.slices:
                step.candidates += self._all_of(step, claim, slice)
        step.number = len(step.candidates)

    def _all_of(self, step: Step, claim: ResourceClaim, slice: PoolSlice) -> list[DeviceEntry]:
        entry = slice.entry
        match = self._selectors.match(entry, step.alternative.selectors)
        visible = -1 if self._features.device_binding_and_status else ~entry.bindings
        failing = 0 if self._rules.errors_do_not_match else match.failing
        chosen = []
        for device in entry.chosen((match.matching & slice.reachable | failing) & visible):
            if failing >> device.bit & 1:
                raise InvalidInput(failure_text(step.alternative, claim, match.failures[device.bit]))
            if self._has_capacity(step, device):
                chosen.append(device)
        return chosen

    def _has_capacity(self, step: Step, device: DeviceEntry) -> bool:
        if not self._features.consumable_capacity:
            return True
        amounts = step.amounts(device)
        if isinstance(amounts, str):
            return False
        consumed = device.consumed or {}
        return (step.is_admin and self._rules.admin_is_exempt) or all(
            consumed.get(amount.name, 0) + amount.consumed.nano <= amount.limit for amount in amounts
        )

    def _might_match(self, pool: Pool, wanted: Alternative) -> bool:
        """Return whether a slice of an unusable pool, as far as it is known, has a device that would match."""
        return any(
            match.matching or match.failing
            for match in (self._selectors.match(e, wanted.selectors) for e in self._inventory.slices_of(pool.key))
        )


def failure_text(wanted: Alternative, claim: ResourceClaim, failure: SelectorFailure) -> str:
    """Describe a failed selector as the reference does: whose selector it is, and the CEL error."""
    whose = f"class {wanted.device_class.name}" if failure.of_class else f"claim {claim_name(claim)}"
    return f"{whose}: selector #{failure.index}: {failure.text}"
