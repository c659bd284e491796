"""The work of `devlet cel eval`: compile in each release, evaluate on each device, and count the results."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from devlet.alloc.lint import hint_for
from devlet.alloc.mentions import Mention, mentions
from devlet.alloc.published import Published
from devlet.cel.functions import UNBOUNDED
from devlet.cel.issues import Issue, render
from devlet.cel.program import COST_LIMIT, Program, as_bool
from devlet.cel.values import CelError
from devlet.cli.cel_input import Specimen
from devlet.cli.cel_release import Release
from devlet.cli.session import Document
from devlet.errors import InvalidSelector

TIME_UP: Final = "not evaluated: the time limit was reached"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one device; `trace` is filled only on request."""

    specimen: Specimen
    result: bool | CelError
    cost: int
    trace: Mapping[int, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "error" if isinstance(self.result, CelError) else str(self.result).lower()

    @property
    def error(self) -> str:
        return str(self.result) if isinstance(self.result, CelError) else ""

    def document(self) -> Document:
        names = {"driver": self.specimen.driver, "pool": self.specimen.pool, "device": self.specimen.device}
        result = "runtime-error" if self.error else self.result
        found = {**names, "node": self.specimen.node, "result": result, "error": self.error, "actualCost": self.cost}
        return {key: value for key, value in found.items() if value != ""}


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An expression in one release: either a compile error or an outcome per device."""

    release: Release
    expression: str
    title: str = ""
    program: Program | None = None
    compile_error: str = ""
    outcomes: Sequence[Outcome] = ()
    names: Sequence[tuple[Mention, str]] = ()
    """The attributes that are used, each with a sentence about how many devices have it."""
    hint: str = ""

    @property
    def counts(self) -> Counter[str]:
        return Counter(outcome.text for outcome in self.outcomes)

    @property
    def estimate(self) -> int | str:
        most = self.program.cost.max if self.program else 0
        return "unbounded" if most >= UNBOUNDED else most

    @property
    def exceeds(self) -> bool:
        return self.program is not None and self.program.cost.max > COST_LIMIT

    def caret(self, outcome: Outcome) -> str:
        """Return the error of a device with its place in the expression."""
        assert self.program is not None and isinstance(outcome.result, CelError)
        positions = self.program.checked.parsed.source.positions
        return render(self.expression, [Issue(outcome.error, positions.get(outcome.result.node, -1))])


class Evaluator:
    """Evaluates expressions. `seconds` limits one expression on all devices; `trace` keeps subexpression values.

    Attribute names are looked up in all devices (`published`), even if the expression is evaluated on only some.
    """

    def __init__(
        self, specimens: Sequence[Specimen], published: Published, *, seconds: float = 10.0, trace: bool = False
    ) -> None:
        self._specimens = specimens
        self._seconds = seconds
        self._trace = trace
        self._published = published

    def evaluate(self, expression: str, release: Release, title: str = "") -> Evaluated:
        try:
            program = release.compile(expression)
        except InvalidSelector as e:
            return Evaluated(release, expression, title, compile_error=str(e), hint=hint_for(str(e)))
        give_up = deadline(self._seconds)
        outcomes = [self._outcome(program, specimen, release.lists, give_up) for specimen in self._specimens]
        return Evaluated(release, expression, title, program, outcomes=outcomes, names=list(self._names(program)))

    def _outcome(self, program: Program, specimen: Specimen, lists: bool, give_up: Callable[[], bool]) -> Outcome:
        if problem := specimen.input.problem_with(lists):
            return Outcome(specimen, problem, 0)
        if give_up():
            return Outcome(specimen, CelError(TIME_UP), 0)
        evaluation = program.evaluate({"device": specimen.input}, give_up=give_up, trace=self._trace)
        result = evaluation.error or evaluation.value
        if result is not True and result is not False:
            result = as_bool(result)
        return Outcome(specimen, result, evaluation.cost, evaluation.trace)

    def _names(self, program: Program) -> Iterator[tuple[Mention, str]]:
        seen = set()
        for mention in mentions(program.checked):
            key = (mention.kind, mention.domain, mention.name)
            if key not in seen and self._published.total:
                seen.add(key)
                yield mention, self._published.sentence(mention)


def deadline(seconds: float) -> Callable[[], bool]:
    """Return a function that tells whether the time from now is up; 0 means no limit."""
    if not seconds:
        return lambda: False
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def document(evaluated: Evaluated, *, tree: bool) -> Document:
    found: Document = {"expression": evaluated.expression, **evaluated.release.document()}
    if evaluated.title:
        found["selector"] = evaluated.title
    if evaluated.program is None:
        return found | {"compileError": evaluated.compile_error} | ({"hint": evaluated.hint} if evaluated.hint else {})
    found |= {"estimatedCost": evaluated.estimate, "exceedsEstimateLimit": evaluated.exceeds, "costLimit": COST_LIMIT}
    found["counts"] = {key: evaluated.counts[key] for key in ("true", "false", "error")}
    found["names"] = [sentence for _, sentence in evaluated.names]
    found["devices"] = [_device(evaluated.program, outcome, tree) for outcome in evaluated.outcomes]
    return found


def _device(program: Program, outcome: Outcome, tree: bool) -> Document:
    if not tree or not outcome.trace:
        return outcome.document()
    from devlet.cli.views import cel_tree

    return outcome.document() | {"tree": cel_tree.documents(program.checked, outcome.trace)}
