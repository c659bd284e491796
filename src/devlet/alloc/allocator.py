"""The allocator: find devices of a node for some claims, or say why there are none.

Keep one allocator for all nodes. It gathers the pools of a node again only when slices for that node change, and
evaluates selectors once per slice. The allocator never changes the inventory; the caller that uses an answer updates
the inventory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from devlet.alloc.candidates import Candidates
from devlet.alloc.constraints import Constraint, make_constraint
from devlet.alloc.features import ALL_FEATURES, Features, Rules
from devlet.alloc.inventory import Inventory
from devlet.alloc.layout import Layout
from devlet.alloc.pools import gather
from devlet.alloc.requests import RESULTS_MAX, Reader, Request, claim_name, read_request
from devlet.alloc.search import Chosen, Exhausted, Limits, Search
from devlet.alloc.selectors import Selectors
from devlet.alloc.steps import Step
from devlet.cel.program import Interrupted
from devlet.errors import InvalidInput
from devlet.objects.identifiers import NodeName
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.node import Node

__all__ = ["Allocator", "Fit", "NoFit", "Outcome", "Wanted"]


LAYOUTS_MAX: Final = 20_000


@dataclass(frozen=True, slots=True)
class Fit:
    """The devices of each claim, in the order of the claims. `steps` counts the devices that the search tried."""

    node: Node
    claims: tuple[ResourceClaim, ...]
    chosen: tuple[tuple[Chosen, ...], ...]
    steps: int = 0


@dataclass(frozen=True, slots=True)
class NoFit:
    """The claims do not fit on this node. With `is_exhausted` the search was given up, so they may fit after all."""

    reason: str = ""
    is_exhausted: bool = False
    steps: int = 0


Outcome = Fit | NoFit


@dataclass(frozen=True, slots=True)
class Wanted:
    """Claims that were read once, to be allocated on many nodes.

    `error` says why they cannot be allocated on any node; it is raised when a search would reach it. `single` is set if
    the claims consist of one plain request: such claims need no search.
    """

    claims: tuple[ResourceClaim, ...]
    requests: tuple[tuple[Request, ...], ...]
    error: InvalidInput | None
    single: Request | None


class Allocator:
    """Allocates devices. With `Rules.reference()` every answer equals the reference's.

    Not thread-safe: results are cached between calls.
    """

    def __init__(self, inventory: Inventory, features: Features = ALL_FEATURES, rules: Rules = Rules()) -> None:
        self.inventory = inventory
        self.features = features
        self.rules = rules
        self.selectors = Selectors(lists=features.list_type_attributes)
        self._reader = Reader(inventory, self.selectors, features, rules)
        self._candidates = Candidates(inventory, self.selectors, features, rules)
        self._layouts: dict[NodeName, Layout] = {}

    def read(self, claims: Sequence[ResourceClaim]) -> Wanted:
        """Read claims once. An invalid claim raises its error later, on allocation, after the errors that the reference
        reports first."""
        requests: list[tuple[Request, ...]] = []
        error: InvalidInput | None = None
        for claim in claims:
            read: list[Request] = []
            try:
                for request in claim.spec.devices.requests:
                    read.append(read_request(claim, request, self._reader))  # noqa: PERF401 (kept if one fails)
            except InvalidInput as e:
                error = e
            requests.append(tuple(read))
            if error:
                break
        return Wanted(tuple(claims), tuple(requests), error, None if error else _single(claims, requests))

    def allocate(self, node: Node, claims: Sequence[ResourceClaim], limits: Limits = Limits()) -> Outcome:
        """Allocate devices for all claims at once. Raises InvalidInput if the claims cannot be allocated on any
        node."""
        return self.allocate_wanted(node, self.read(claims), limits)

    def allocate_wanted(self, node: Node, wanted: Wanted, limits: Limits = Limits()) -> Outcome:
        try:
            search = self.search(node, wanted, limits)
        except Interrupted as e:
            return NoFit(f"the search was given up while a selector was evaluated: {e}", True)
        try:
            found = search.run()
        except Exhausted:
            return NoFit(f"the search was given up after {search.steps} steps", True, search.steps)
        if found:
            return Fit(node, wanted.claims, tuple(map(tuple, search.results)), search.steps)
        if any(pool.problem and not pool.is_incomplete for pool in self.layout(node).pools):
            return NoFit("invalid resource pools were encountered", steps=search.steps)
        return NoFit(steps=search.steps)

    def search(self, node: Node, wanted: Wanted, limits: Limits = Limits(), *, cut: bool = True) -> Search:
        """Return a search that has not started. Raises InvalidInput if the claims cannot be allocated on any node."""
        self.selectors.give_up = limits.give_up
        layout = self.layout(node)
        steps: list[list[list[Step]]] = []
        constraints: list[list[Constraint]] = []
        for i, (claim, requests) in enumerate(zip(wanted.claims, wanted.requests, strict=False)):
            steps.append(self._candidates.steps(i, claim, requests, layout, limits.give_up))
            if wanted.error and i == len(wanted.requests) - 1:
                # the error is raised once per node; without this it would collect the traceback of each
                raise wanted.error.with_traceback(None)
            _check_count(claim, steps[-1])
            constraints.append(self._constraints(claim))
        return Search(steps, constraints, layout.by_key, self.features, self.rules, limits, cut=cut)

    def layout(self, node: Node) -> Layout:
        """Return the pools of the node. An updated node is a new object, so its pools are gathered again."""
        layout = self._layouts.get(node.name)
        if layout is None or layout.node is not node or layout.revision < self.inventory.revisions.of(node.name):
            pools = gather(self.inventory, node, self.features, self.rules)
            if len(self._layouts) >= LAYOUTS_MAX:
                self._layouts.clear()  # this also drops nodes that no longer exist
            layout = self._layouts[node.name] = Layout(node, pools, self.inventory.revisions.now)
        return layout

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


def _single(claims: Sequence[ResourceClaim], requests: Sequence[Sequence[Request]]) -> Request | None:
    if len(claims) != 1 or len(requests[0]) != 1 or claims[0].spec.devices.constraints:
        return None
    request = requests[0][0]
    only = request.alternatives[0]
    is_plain = not (request.is_list or only.is_all or only.admin_access or only.capacity)
    return request if is_plain and 0 < only.count <= RESULTS_MAX else None


def _check_count(claim: ResourceClaim, steps: Sequence[Sequence[Step]]) -> None:
    least = sum(min(step.number for step in alternatives) for alternatives in steps)
    if least > RESULTS_MAX:
        text = f"number of requested devices {least} exceeds the claim limit of {RESULTS_MAX}"
        raise InvalidInput(f"claim {claim_name(claim)}: {text}")
