"""Run a plan: return the value, the actual cost and, on request, the value of every part.

The cost is exactly that of the reference. The functions that `generate` writes do not count cost and are much
faster.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from devlet.cel.cost import Tracker
from devlet.cel.frames import Frame, Run
from devlet.cel.pattern_work import PatternMeter
from devlet.cel.plan import Plan
from devlet.cel.recursion import with_room
from devlet.cel.values import CelError, Value

DEFAULT_LIMIT: Final = 1_000_000

MAX_PATTERN_WORK: Final = 100_000
"""The limit on instructions of the regular expressions that one evaluation may build and compile."""

_SHALLOW = 100


@dataclass(frozen=True)
class Evaluation:
    """Either an error or a value. `trace`, if requested, has the last value of each node, by its id."""

    value: Value
    error: CelError | None
    cost: int
    trace: Mapping[int, Value | CelError] = field(default_factory=dict)


def evaluate(
    plan: Plan,
    variables: Mapping[str, Value],
    *,
    cost_limit: int = DEFAULT_LIMIT,
    give_up: Callable[[], bool] | None = None,
    trace: bool = False,
) -> Evaluation:
    """Run a plan. Comprehensions call `give_up` occasionally; once it returns true, the evaluation fails."""
    traced: dict[int, Value] | None = {} if trace else None
    tracker = Tracker(cost_limit, traced)
    run = plan.root.evaluate if plan.depth <= _SHALLOW else with_room(plan.root.evaluate)
    try:
        with PatternMeter(MAX_PATTERN_WORK):
            value = run(Frame(Run(tracker, give_up), variables))
    except CelError as raised:
        value = raised
    except Exception as unexpected:  # recover like the reference: one expression must not affect the others
        value = CelError(f"internal error: {unexpected}")
    if isinstance(value, CelError):
        return Evaluation(None, value, tracker.cost, traced or {})
    return Evaluation(value, None, tracker.cost, traced or {})
