"""The API server's checks of a new or changed selector.

New expressions must compile in the environment of the release and must not be too expensive in the worst case. Stored
expressions pass if any release accepted them.
"""

from collections.abc import Sequence
from functools import lru_cache

from devlet.alloc.device_cel import device_environment
from devlet.alloc.selectors import compile_selector
from devlet.cel.pattern_work import PatternMeter
from devlet.cel.program import COST_LIMIT
from devlet.errors import Cause, InvalidSelector
from devlet.objects.validation.field_errors import forbidden, invalid

__all__ = ["check_selector", "selector_work"]


def check_selector(expression: str, stored: bool) -> Sequence[Cause]:
    """Return the causes for which an API server rejects the expression, without fields; empty if it is valid."""
    return _checked(expression, stored)[0]


def selector_work(expression: str, stored: bool) -> int:
    """Return the number of instructions that the regular expressions in it compile to."""
    return _checked(expression, stored)[1]


@lru_cache(4096)
def _checked(expression: str, stored: bool) -> tuple[Sequence[Cause], int]:
    with PatternMeter(counts_known=True) as meter:
        causes = _causes(expression, stored)
    return causes, meter.spent


def _causes(expression: str, stored: bool) -> Sequence[Cause]:
    try:
        program = compile_selector(expression, device_environment(stored=stored))
    except InvalidSelector as e:
        return (invalid("", expression, str(e)),)
    if program.cost.max > COST_LIMIT:
        return (forbidden("", "too complex, exceeds cost limit"),)
    return ()
