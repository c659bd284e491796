"""Selectors for the checker, evaluated by devlet's own CEL: the part of the rules that is not written down twice.

The checker takes any function of this shape; where the reference's CEL is at hand, that one can be used instead.
"""

from functools import lru_cache

from devlet.alloc.device_cel import DeviceInput, device_environment
from devlet.alloc.selectors import compile_selector
from devlet.cel.program import Program
from devlet.cel.values import CelError
from devlet.errors import InvalidSelector
from devlet.objects.documents import Document, view
from devlet.objects.types.slice import Device
from tests.support.allocation.rules import Matches

__all__ = ["selector_matches"]


def selector_matches(problem: Document) -> Matches:
    """Raises InvalidSelector for a device that the expression cannot be evaluated for."""
    lists = (problem.get("features") or {}).get("ListTypeAttributes", True)

    def matches(expression: str, device: Document, driver: str) -> bool:
        input = DeviceInput(driver, view(Device, device))
        result = input.problem_with(lists) or _program(expression, lists).matches([input])[0]
        if isinstance(result, CelError):
            raise InvalidSelector(str(result))
        return result

    return matches


@lru_cache(256)
def _program(expression: str, lists: bool) -> Program:
    return compile_selector(expression, device_environment(lists=lists), lists=lists)
