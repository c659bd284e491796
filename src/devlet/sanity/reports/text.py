"""A report for people: the findings, how to reproduce them, and a summary."""

from textwrap import indent

from devlet.sanity.report import Report, Result

__all__ = ["line", "render"]


def render(report: Report) -> str:
    parts = [_finding(result) for result in report.findings]
    if report.trouble:
        parts.insert(0, f"The driver could not be tested: {report.trouble}")
    return "\n\n".join([*parts, report.summary]) + "\n"


def line(result: Result) -> str:
    """Return one line about a finished check."""
    reason = f": {result.text.splitlines()[0]}" if result.text else ""
    return f"{result.word:<8}{result.check.id:<12} {result.check.title}{reason}"


def _finding(result: Result) -> str:
    rows = [
        f"{result.check.id} {result.word}: {result.check.title}",
        f"  seen: {_below(result.text)}",
        f"  rule: {result.check.rule}",
        f"  source: {result.check.source}",
        f"  to reproduce: {result.how}",
    ]
    if result.log and result.log not in result.text:
        rows.append(f"  log: {_below(result.log)}")
    return "\n".join(rows)


def _below(text: str) -> str:
    return indent(text, "    ").lstrip()
