"""Functions that exist for the checker only."""

import pytest

from devlet.cel.checker import check
from devlet.cel.environment import kubernetes
from devlet.cel.functions import UNBOUNDED, CallEstimate, Range, SizedNode
from devlet.cel.issues import CompileError
from devlet.cel.library.authorizer import LIBRARY, SELECTORS
from devlet.cel.parser import parse
from devlet.cel.types import BOOL, STRING
from devlet.cel.values import CelError

BASE = kubernetes((1, 36), stored=True)
FUNCTIONS = {f.name: f for library in (LIBRARY, SELECTORS) for f in library.functions}


def test_they_can_be_called_on_something_unknown() -> None:
    expression = "dyn(1).group('').resource('pods').namespace('n').fieldSelector('x=y').check('get').allowed()"
    assert check(parse(expression), BASE).output == BOOL


def test_they_cannot_be_called_on_anything_known() -> None:
    with pytest.raises(CompileError, match=r"found no matching overload for 'path' applied to 'string\.\(string\)'"):
        check(parse("'a'.path('b')"), BASE)


def test_calls_fail_without_an_authorizer() -> None:
    for function in FUNCTIONS.values():
        for overload in function.overloads:
            with pytest.raises(CelError, match="no such overload"):
                overload.call(1, "x")


def estimated(name: str, size: Range | None) -> CallEstimate | None:
    estimate = FUNCTIONS[name].overloads[0].estimate
    assert estimate
    return estimate(None, [SizedNode(STRING, (), size)])


def test_only_two_checks_are_affordable() -> None:
    assert estimated("check", None) == CallEstimate(Range(350_000, 350_000))
    assert estimated("name", None) == CallEstimate(Range(1, 1))


def test_a_selector_costs_by_its_length() -> None:
    assert estimated("labelSelector", Range(0, 10)) == CallEstimate(Range(10, 10 + 1 + 250))
    unknown = estimated("fieldSelector", None)
    assert unknown
    assert unknown.cost.max == UNBOUNDED
