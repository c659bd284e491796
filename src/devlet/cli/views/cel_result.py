"""The answers of `devlet cel eval` as text: a table of devices, counted where there are many, or a tree of values."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from devlet.cel.program import COST_LIMIT
from devlet.cli.cel_eval import Evaluated, Outcome
from devlet.cli.tables import printable
from devlet.cli.views import cel_tree
from devlet.cli.views.sheet import table

MANY: Final = 20
"""Devices; more than that are counted unless all are asked for."""


def lines(evaluated: Evaluated, *, tree: bool, wide: bool) -> Iterator[str]:
    """One expression in one release."""
    if evaluated.title:
        yield f"# {evaluated.title}"
    if evaluated.program is None:
        yield from refusal(evaluated)
        return
    if tree:
        yield from chain.from_iterable(_tree(evaluated, outcome) for outcome in evaluated.outcomes)
    elif len(evaluated.outcomes) > MANY and not wide:
        yield from _grouped(evaluated.outcomes)
    else:
        yield from _each(evaluated.outcomes)
    if not tree or len(evaluated.outcomes) != 1:
        yield _summary(evaluated)
    yield _cost(evaluated)
    yield from (printable(sentence) for _, sentence in evaluated.names)


def refusal(evaluated: Evaluated) -> Iterator[str]:
    yield from (printable(line) for line in evaluated.compile_error.splitlines())
    if evaluated.hint:
        yield f"hint: {evaluated.hint}"


def side_by_side(found: Sequence[Evaluated]) -> Iterator[str]:
    """The same expression in several releases."""
    header = ["KUBERNETES", "COMPILES", "COST", "TRUE", "FALSE", "ERROR"]
    rows = []
    for each in found:
        counts = [each.counts[key] for key in ("true", "false", "error")] if each.program else ["-"] * 3
        rows.append([each.release.name, "yes" if each.program else "no", _estimate(each), *counts])
    yield from table(header, rows)
    for each in found:
        if each.program is None:
            yield f"in {each.release.name}:"
            yield from refusal(each)
    if shown := next((each for each in reversed(found) if each.program), None):
        yield from (printable(sentence) for _, sentence in shown.names)


def _estimate(evaluated: Evaluated) -> str:
    if evaluated.program is None:
        return "-"
    text = evaluated.estimate if isinstance(evaluated.estimate, str) else f"{evaluated.estimate:,}"
    return f"{text} (too much)" if evaluated.exceeds else text


def _each(outcomes: Sequence[Outcome]) -> Iterator[str]:
    with_errors = any(outcome.error for outcome in outcomes)
    header = ["DEVICE", "RESULT", "COST"] + ["ERROR"] * with_errors
    yield from table(header, [[o.specimen.name, o.text, o.cost] + [o.error] * with_errors for o in outcomes])


def _grouped(outcomes: Sequence[Outcome]) -> Iterator[str]:
    groups: dict[tuple[str, str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.specimen.driver, outcome.text, outcome.error), []).append(outcome)
    rows = []
    for (driver, text, error), group in groups.items():
        costs = sorted({outcome.cost for outcome in group})
        cost = str(costs[0]) if len(costs) == 1 else f"{costs[0]}-{costs[-1]}"
        rows.append([driver, len(group), text, cost, group[0].specimen.name, error])
    header = ["DRIVER", "DEVICES", "RESULT", "COST", "FOR EXAMPLE"]
    with_errors = any(row[-1] for row in rows)
    yield from table(header + ["ERROR"] * with_errors, [row if with_errors else row[:-1] for row in rows])


def _tree(evaluated: Evaluated, outcome: Outcome) -> Iterator[str]:
    assert evaluated.program is not None
    yield f"{printable(outcome.specimen.name)}: {outcome.text}, cost {outcome.cost:,}"
    if outcome.trace:
        yield from (f"  {printable(line)}" for line in cel_tree.lines(evaluated.program.checked, outcome.trace))
    if outcome.error:
        yield from (printable(line) for line in evaluated.caret(outcome).splitlines())


def _summary(evaluated: Evaluated) -> str:
    counts, total = evaluated.counts, len(evaluated.outcomes)
    if not total:
        return "there are no devices"
    text = f"{counts['true']} of {total} {'device matches' if total == 1 else 'devices match'}"
    return text + (f", {counts['error']} cannot be evaluated" if counts["error"] else "")


def _cost(evaluated: Evaluated) -> str:
    estimate = evaluated.estimate if isinstance(evaluated.estimate, str) else f"at most {evaluated.estimate:,}"
    limit = f"the limit is {COST_LIMIT:,}"
    refused = ": an API server rejects it" if evaluated.exceeds else ""
    return f"estimated cost: {estimate}, {limit}{refused}"
