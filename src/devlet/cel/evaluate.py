"""Run a plan: value, actual cost and, when asked, the value of every part.

This counts cost exactly as the reference does; the functions that `generate` writes do not count, and are much faster.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from devlet.cel.cost import Tracker
from devlet.cel.frames import Frame, Run
from devlet.cel.plan import Plan
from devlet.cel.values import CelError, Value

DEFAULT_LIMIT: Final = 1_000_000

_SHALLOW = 100
_FRAMES_PER_NODE = 5


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
    _make_room(plan.depth)
    traced: dict[int, Value] | None = {} if trace else None
    tracker = Tracker(cost_limit, traced)
    try:
        value = plan.root.evaluate(Frame(Run(tracker, give_up), variables))
    except CelError as raised:
        value = raised
    except Exception as unexpected:  # as the reference recovers: one expression must not end all the others
        value = CelError(f"internal error: {unexpected}")
    if isinstance(value, CelError):
        return Evaluation(None, value, tracker.cost, traced or {})
    return Evaluation(value, None, tracker.cost, traced or {})


def _make_room(depth: int) -> None:
    """Expressions may be nested 250 levels deep, and then need more than the thousand calls that Python starts with.

    The limit is never lowered again: another thread may be deep in an expression.
    """
    if depth > _SHALLOW:
        needed = 1000 + depth * _FRAMES_PER_NODE
        if sys.getrecursionlimit() < needed:
            sys.setrecursionlimit(needed)
