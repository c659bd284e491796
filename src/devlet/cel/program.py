"""A compiled expression: checked, costed and ready to run.

Generated code does not count cost. It is used if the estimate is far below the limit; other expressions run in the
evaluator, which stops at the limit.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from devlet.cel import generate as generator
from devlet.cel.checker import Checked, check
from devlet.cel.environment import Environment
from devlet.cel.estimate import estimate
from devlet.cel.evaluate import Evaluation, evaluate
from devlet.cel.functions import Range
from devlet.cel.issues import CompileError
from devlet.cel.parser import parse
from devlet.cel.plan import Plan, plan
from devlet.cel.types import BOOL, Type, type_name
from devlet.cel.values import CelError, Optional, Value
from devlet.errors import InvalidSelector

__all__ = ["COST_LIMIT", "Interrupted", "Program", "compile"]

COST_LIMIT: Final = 1_000_000

# Estimates use the sizes that validation allows. The margin for generated code covers values that validation let
# through.
GENERATED_MAX: Final = 50_000


class Interrupted(Exception):
    """The caller did not want to wait any longer."""


@dataclass(frozen=True)
class Program:
    expression: str
    checked: Checked
    plan: Plan

    @property
    def output(self) -> Type:
        return self.checked.output

    @cached_property
    def cost(self) -> Range:
        """Return the least and the most that an evaluation costs."""
        return estimate(self.checked)

    def evaluate(
        self,
        variables: Mapping[str, Value],
        *,
        cost_limit: int = COST_LIMIT,
        give_up: Callable[[], bool] | None = None,
        trace: bool = False,
    ) -> Evaluation:
        return evaluate(self.plan, variables, cost_limit=cost_limit, give_up=give_up, trace=trace)

    @cached_property
    def is_generated(self) -> bool:
        """Return whether `matches` runs generated code."""
        return self.cost.max <= GENERATED_MAX and not self.plan.makes_patterns

    @cached_property
    def _filter(self) -> Callable[[Sequence[Value]], list[Value | CelError]]:
        return generator.generate_filter(self.checked, self.plan)

    def matches(self, values: Sequence[Value], give_up: Callable[[], bool] | None = None) -> list[bool | CelError]:
        """Return the result for each value of the only variable: a bool, or an error. Raises Interrupted."""
        if self.is_generated:
            results = self._filter(values) if give_up is None else self._in_pieces(values, give_up)
        else:
            results = [self._one(value, give_up) for value in values]
        if self.output == BOOL:
            return results
        return [result if result is True or result is False else as_bool(result) for result in results]

    def _in_pieces(self, values: Sequence[Value], give_up: Callable[[], bool]) -> list[Value | CelError]:
        """Evaluate in pieces that each cost as much as one expensive evaluation, so that callers can be interrupted in
        between."""
        size = max(COST_LIMIT // (self.cost.max + 1), 1)
        results = list(self._filter(values[:size]))
        for start in range(size, len(values), size):
            if give_up():
                raise Interrupted(self.expression)
            results += self._filter(values[start : start + size])
        return results

    def _one(self, value: Value, give_up: Callable[[], bool] | None) -> Value | CelError:
        (variable,) = self.checked.environment.variables
        evaluation = self.evaluate({variable: value}, give_up=give_up)
        if give_up and (evaluation.cost > COST_LIMIT // 100 or evaluation.error) and give_up():
            raise Interrupted(self.expression)
        return evaluation.error or evaluation.value


_NO_BOOL: Final = {
    "string": "unsupported native conversion from string to 'bool'",
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "type": "type conversion not supported for 'type'",
    **{
        name: f"type conversion error from {shown} to 'bool'"
        for name, shown in {
            "double": "Double",
            "bytes": "Bytes",
            "list": "list",
            "map": "map",
            "google.protobuf.Duration": "'Duration'",
            "google.protobuf.Timestamp": "'Timestamp'",
            "kubernetes.NamedFormat": "'Format'",
        }.items()
    },
}


def as_bool(result: Value | CelError) -> bool | CelError:
    """Return a result as a bool, or an error. For an optional its value counts."""
    if result is True or result is False or isinstance(result, CelError):
        return result
    value = result
    while isinstance(value, Optional):
        if not value.has_value:
            return _no_bool(result, "optional.none() dereference")
        value = value.value
    if value is True or value is False:
        return value
    name = type_name(value)
    default = f"type conversion error from '{name.removeprefix('kubernetes.').removeprefix('net.')}' to 'bool'"
    return _no_bool(result, _NO_BOOL.get(name, default))


def _no_bool(result: Value, detail: str) -> CelError:
    return CelError(f"CEL result of type {type_name(result)} could not be converted to bool: {detail}")


def compile(expression: str, environment: Environment, results: Collection[Type] = ()) -> Program:
    """Compile an expression. Raises InvalidSelector, with the texts and places of the reference; also if its type is
    not one of `results`."""
    try:
        checked = check(parse(expression, environment.macros), environment)
    except CompileError as e:
        raise InvalidSelector(f"compilation failed: {e}") from e
    if results and checked.output not in results:
        raise InvalidSelector(f"must evaluate to bool or the unknown type, not {checked.output}")
    try:
        planned = plan(checked)
    except CompileError as e:
        raise InvalidSelector(f"program instantiation failed: {e}") from e
    return Program(expression, checked, planned)
