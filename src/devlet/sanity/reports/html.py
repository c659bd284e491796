"""A report as a single self-contained page, without scripts, fonts or network access."""

from html import escape

from devlet.sanity.report import Report, Result
from devlet.sanity.sources import Source

__all__ = ["render"]

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
:root { color-scheme: light dark; }
h1 { font-size: 1.4rem; } code, pre { font: 13px/1.4 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .6rem; background: color-mix(in srgb, currentColor 8%, transparent); }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid #8884; }
td:first-child { white-space: nowrap; } .passed { color: #1a7f37; } .failed { color: #cf222e; font-weight: 600; }
.warned { color: #9a6700; } .skipped { opacity: .65; }
"""


def render(report: Report) -> str:
    title = f"devlet sanity {escape(report.kind)}"
    facts = f"{escape(report.summary)}, began {escape(report.began)}, seed {report.seed}"
    rows = "\n".join(_row(result) for result in report.results)
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: {escape(report.summary)}</title>
<style>{_STYLE}</style>
<h1>{title}</h1>
<p><code>{escape(report.driver)}</code></p>
<p>{facts}</p>
{_block(report.trouble)}
<table>
<tr><th>check</th><th>outcome</th><th>details</th></tr>
{rows}
</table>
</html>
"""


def _row(result: Result) -> str:
    check = result.check
    cells = [
        f"<td><code>{escape(check.id)}</code></td>",
        f'<td class="{result.word}">{result.word}</td>',
        f"<td>{escape(check.title)}<details{_open(result)}><summary>{_summary(result)}</summary>{_details(result)}</details></td>",
    ]
    return f'<tr id="{escape(check.id)}">{"".join(cells)}</tr>'


def _open(result: Result) -> str:
    return " open" if result.word in ("failed", "warned") else ""


def _summary(result: Result) -> str:
    return escape(result.text.partition("\n")[0]) or f"{result.took:.1f} s"


def _details(result: Result) -> str:
    how = f"<p>To reproduce: {escape(result.how)}</p>" if result.how else ""
    rest = result.text.partition("\n")[2]
    rule = f"{escape(result.check.rule)} ({_source(result.check.source)})"
    return f"<p>Rule: {rule}</p>{how}{_block(rest)}{_block(result.log)}"


def _source(source: Source) -> str:
    return f'<a href="{escape(source.url)}">{escape(source.name)}</a>' if "://" in source.url else escape(source.name)


def _block(text: str) -> str:
    return f"<pre>{escape(text)}</pre>" if text else ""
