"""Problems of a selector, as an API server would report them and as the published devices show them.

Errors are selectors that a server rejects or that can never match. Warnings depend on the devices: the selector may be
fine in another cluster.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from devlet.alloc.cases import evaluated
from devlet.alloc.device_cel import DeviceInput
from devlet.alloc.mentions import Mention, mentions
from devlet.alloc.published import Published
from devlet.alloc.selectors import compile_selector
from devlet.cel.ast import Call, Expr, Literal, children
from devlet.cel.environment import Environment
from devlet.cel.functions import UNBOUNDED
from devlet.cel.issues import CompileError
from devlet.cel.program import COST_LIMIT, Program
from devlet.cel.types import type_name
from devlet.cel.values import CelError
from devlet.errors import InvalidSelector

__all__ = ["Finding", "Results", "Severity", "compile_findings", "hint_for", "lint", "results_of"]

_CLOSE: Final = 0.5
"""Fraction of the cost limit above which a selector gets a note."""

_EQUALITY: Final = {"_==_": "==", "_!=_": "!="}

_HINTS: Final = (
    ("undeclared reference to 'attributes'", 'since 1.31 use device.attributes["DOMAIN"].NAME'),
    ("undeclared reference to 'capacity'", 'use device.capacity["DOMAIN"].NAME'),
    ("undeclared reference to 'driver'", "use device.driver"),
    ("invalid argument to has() macro", 'a domain is tested with "DOMAIN" in device.attributes'),
    (
        "overload for '_>_' applied to '(kubernetes.Quantity",
        'quantities compare as in a.isGreaterThan(quantity("1Gi"))',
    ),
    ("overload for '_<_' applied to '(kubernetes.Quantity", 'quantities compare as in a.isLessThan(quantity("1Gi"))'),
    ("overload for '_>=_' applied to '(kubernetes.Quantity", 'write a.compareTo(quantity("1Gi")) >= 0'),
    ("overload for '_<=_' applied to '(kubernetes.Quantity", 'write a.compareTo(quantity("1Gi")) <= 0'),
    ("overload for '_==_' applied to '(kubernetes.Quantity, string)", 'compare with quantity("1Gi"), not with a text'),
    ("overload for 'sign' applied to 'kubernetes.Quantity.()", "sign is not a method: write sign(q)"),
    ("undefined field 'attribute'", "use device.attributes"),
    ("undefined field 'capacities'", "use device.capacity"),
)


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem. `rule` is its short name; line and column count from 1."""

    severity: Severity
    rule: str
    message: str
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True)
class Results:
    """Results of one expression on many devices. `unfinished` counts the devices that were not evaluated within the
    time limit."""

    values: Sequence[bool | CelError]
    unfinished: int = 0

    @property
    def matching(self) -> int:
        return sum(value is True for value in self.values)

    @property
    def failures(self) -> Counter[str]:
        return Counter(str(value) for value in self.values if isinstance(value, CelError))


def lint(
    expression: str,
    environment: Environment,
    devices: Sequence[DeviceInput] = (),
    *,
    lists: bool = True,
    published: Published | None = None,
    give_up: Callable[[], bool] | None = None,
) -> list[Finding]:
    """Return the findings in the order of the text. `devices` are those to evaluate, `published` is what all devices
    have."""
    try:
        program = compile_selector(expression, environment, lists=lists)
    except InvalidSelector as e:
        return compile_findings(expression, e)
    found = list(_cost(program))
    if devices or published:
        found += _names(program, published or Published(devices))
    if devices:
        found += _outcomes(results_of(program, devices, lists=lists, give_up=give_up), len(devices))
    return sorted(found, key=lambda finding: (finding.line, finding.column))


def results_of(
    program: Program,
    devices: Sequence[DeviceInput],
    *,
    lists: bool = True,
    give_up: Callable[[], bool] | None = None,
) -> Results:
    """Evaluate the expression on all devices: cheap expressions at once, others one device at a time until time is
    up."""
    if program.is_generated:
        results = program.matches(devices)
        pairs = zip(devices, results, strict=True)
        return Results([device.problem_with(lists) or result for device, result in pairs])
    values: list[bool | CelError] = []
    for device in devices:
        if give_up and give_up():
            break
        values.append(evaluated(program, device, lists=lists, give_up=give_up)[0])
    return Results(values, len(devices) - len(values))


def compile_findings(expression: str, error: InvalidSelector) -> list[Finding]:
    """Return a finding for each issue of the compiler."""
    cause = error.__cause__
    if not isinstance(cause, CompileError):
        return [Finding(Severity.ERROR, "compile", str(error))]
    found = []
    for issue in cause.issues:
        hint = hint_for(issue.message)
        line, column = _place(expression, max(issue.offset, 0))
        message = issue.message + (f"; {hint}" if hint else "")
        found.append(Finding(Severity.ERROR, "compile", message, line, column))
    return sorted(found, key=lambda finding: (finding.line, finding.column))


def hint_for(message: str) -> str:
    """Return what to write instead, for common mistakes; empty for others."""
    return next((hint for part, hint in _HINTS if part in message), "")


def _cost(program: Program) -> Iterator[Finding]:
    most = program.cost.max
    text = "unbounded" if most >= UNBOUNDED else f"{most:,}"
    if most > COST_LIMIT:
        message = f"the estimated cost is {text}, more than the limit of {COST_LIMIT:,}: an API server rejects it"
        yield Finding(Severity.ERROR, "cost", message)
    elif most > COST_LIMIT * _CLOSE:
        message = f"the estimated cost is {text}, {most * 100 // COST_LIMIT}% of the limit of {COST_LIMIT:,}"
        yield Finding(Severity.WARNING, "cost", message)


def _names(program: Program, published: Published) -> Iterator[Finding]:
    found = {mention.node: mention for mention in mentions(program.checked)}
    for mention in found.values():
        if published.total and not published.count(mention):
            severity = Severity.NOTE if mention.is_test else Severity.WARNING
            yield _at(program, mention.node, severity, "unknown-name", published.sentence(mention))
    for node in _all(program.checked.parsed.root):
        if isinstance(node, Call) and node.function in _EQUALITY:
            yield from _mismatch(program, node, found, published)


def _mismatch(program: Program, node: Call, found: dict[int, Mention], published: Published) -> Iterator[Finding]:
    """Yield findings for attributes compared with a literal of a type that they have on no device."""
    left, right = node.args
    literal, other, on_left = (right, left, True) if isinstance(right, Literal) else (left, right, False)
    mention = found.get(other.id)
    if not isinstance(literal, Literal) or mention is None or mention.is_test:
        return
    types, asked = published.types(mention), type_name(literal.value)
    if not types or any(_comparable(type_, asked) for type_ in types):
        return
    has = " or ".join(sorted(types))
    fails = on_left and node.function == "_==_" and set(types) == {"kubernetes.Semver"}
    always = "fails" if fails else f"is always {'false' if node.function == '_==_' else 'true'}"
    message = f"{mention.text} is {has}: {_EQUALITY[node.function]} with {asked} {always}"
    version = literal.value if "kubernetes.Semver" in types and isinstance(literal.value, str) else None
    hint = "" if version is None else f'; write semver("{version}")'
    yield _at(program, node.id, Severity.WARNING, "type-mismatch", message + hint)


def _comparable(type_: str, asked: str) -> bool:
    numbers = ("int", "uint", "double")
    return type_ == asked or (type_ in numbers and asked in numbers)


def _outcomes(results: Results, total: int) -> Iterator[Finding]:
    devices = "1 device" if total == 1 else f"all {total} devices"
    for message, count in results.failures.most_common(3):
        yield Finding(
            Severity.WARNING, "run-time-error", f"fails on {count} of {total} devices: {message}{_way(message)}"
        )
    if results.unfinished:
        message = f"time ran out before {results.unfinished} of {total} devices were evaluated"
        yield Finding(Severity.WARNING, "time", message)
    elif results.matching == total:
        yield Finding(Severity.NOTE, "always-true", f"matches {devices}")
    elif not results.matching and not results.failures:
        yield Finding(Severity.WARNING, "always-false", f"matches none of {total} devices")


def _way(message: str) -> str:
    name = message.removeprefix("no such key: ")
    return f"; test it first with has(….{name}), or use .?{name}.orValue(…)" if name != message else ""


def _all(node: Expr) -> Iterator[Expr]:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += children(node)


def _at(program: Program, node: int, severity: Severity, rule: str, message: str) -> Finding:
    line, column = _place(program.expression, program.checked.parsed.source.positions.get(node, 0))
    return Finding(severity, rule, message, line, column)


def _place(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
