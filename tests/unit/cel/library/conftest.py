"""Expressions are run by the real parser, checker and evaluator."""

from collections.abc import Callable
from typing import Any

import pytest

from devlet.cel.checker import check
from devlet.cel.environment import BINDINGS, kubernetes
from devlet.cel.estimate import estimate
from devlet.cel.evaluate import Evaluation, evaluate
from devlet.cel.functions import Range
from devlet.cel.library import includes
from devlet.cel.parser import parse
from devlet.cel.plan import plan
from devlet.cel.types import DYN
from devlet.cel.values import Value

Run = Callable[..., Evaluation]


@pytest.fixture
def run() -> Run:
    """Evaluate an expression; keywords are variables, and their types are not known before."""

    def run(expression: str, **variables: Any) -> Evaluation:
        environment = kubernetes((1, 36), stored=True).extended(
            variables=dict.fromkeys(variables, DYN), libraries=[BINDINGS, includes.LIBRARY]
        )
        return evaluate(plan(check(parse(expression, environment.macros), environment)), variables)

    return run


@pytest.fixture
def value(run: Run) -> Callable[..., Value]:
    def value(expression: str, **variables: Any) -> Value:
        evaluation = run(expression, **variables)
        assert evaluation.error is None
        return evaluation.value

    return value


@pytest.fixture
def error(run: Run) -> Callable[..., str]:
    def error(expression: str, **variables: Any) -> str:
        evaluation = run(expression, **variables)
        assert evaluation.error is not None, evaluation.value
        return evaluation.error.message

    return error


@pytest.fixture
def estimated() -> Callable[[str], Range]:
    def estimated(expression: str) -> Range:
        environment = kubernetes((1, 36), stored=True)
        return estimate(check(parse(expression, environment.macros), environment))

    return estimated
