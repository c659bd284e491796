"""Run a plan: value, actual cost and, when asked, the value of every part.

This counts cost exactly as the reference does; the functions that `generate` writes do not count, and are much faster.
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
"""Instructions of the regular expressions that one evaluation may put together and compile."""

_SHALLOW = 100


@dataclass(frozen=True)
class Evaluation:
    """Either an error or a value. `trace` has what each node's value was last, by its id, if that was asked for."""

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
    """`give_up` is asked now and then in comprehensions; the evaluation fails as soon as it says yes."""
    traced: dict[int, Value] | None = {} if trace else None
    tracker = Tracker(cost_limit, traced)
    run = plan.root.evaluate if plan.depth <= _SHALLOW else with_room(plan.root.evaluate)
    try:
        with PatternMeter(MAX_PATTERN_WORK):
            value = run(Frame(Run(tracker, give_up), variables))
    except CelError as raised:
        value = raised
    except Exception as unexpected:  # as the reference recovers: one expression must not end all the others
        value = CelError(f"internal error: {unexpected}")
    if isinstance(value, CelError):
        return Evaluation(None, value, tracker.cost, traced or {})
    return Evaluation(value, None, tracker.cost, traced or {})
