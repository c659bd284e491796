"""Trial runs of the allocator on changed claims or a changed inventory. The number of runs is limited."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from devlet.alloc.allocator import Allocator, Fit, NoFit, Outcome
from devlet.alloc.search import Limits
from devlet.errors import InvalidInput
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.node import Node

__all__ = ["Trials"]

RUNS_MAX = 400
STEPS_MAX = 400_000
STEPS_PER_RUN = 50_000


class Trials:
    """Runs trials within a common budget, because there are many. `limits` apply to each search."""

    def __init__(self, limits: Callable[[], Limits] = Limits, runs: int = RUNS_MAX, steps: int = STEPS_MAX) -> None:
        self._limits = limits
        self._runs = runs
        self._steps = steps

    @property
    def is_spent(self) -> bool:
        return self._runs <= 0 or self._steps <= 0

    def fits(self, allocator: Allocator, node: Node, claims: Sequence[ResourceClaim]) -> bool | None:
        """Return whether the claims fit, or None if that was not determined. Invalid claims do not fit."""
        if self.is_spent:
            return None
        self._runs -= 1
        outcome = self._outcome(allocator, node, claims)
        if isinstance(outcome, NoFit) and outcome.is_exhausted:
            return None
        return isinstance(outcome, Fit)

    def _outcome(self, allocator: Allocator, node: Node, claims: Sequence[ResourceClaim]) -> Outcome:
        limits = self._limits()
        limits = replace(limits, steps=min(limits.steps, self._steps, STEPS_PER_RUN))
        try:
            outcome = allocator.allocate(node, claims, limits)
        except InvalidInput as e:
            return NoFit(str(e))
        self._steps -= outcome.steps
        return outcome
