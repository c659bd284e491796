"""A report as JSON for programs. Fields are added, never renamed."""

import json
from typing import Any

from devlet.sanity.report import Report, Result

__all__ = ["render"]


def render(report: Report) -> str:
    document = {
        "apiVersion": "devlet.dev/v1alpha1",
        "kind": "SanityReport",
        "suite": report.kind,
        "driver": report.driver,
        "seed": report.seed,
        "began": report.began,
        "seconds": round(report.took, 3),
        "trouble": report.trouble,
        "interrupted": report.interrupted,
        "counts": dict(sorted(report.counts.items())),
        "results": [_result(result) for result in report.results],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _result(result: Result) -> dict[str, Any]:
    return {
        "id": result.check.id,
        "title": result.check.title,
        "rule": result.check.rule,
        "source": result.check.source._asdict(),
        "outcome": result.word,
        "text": result.text,
        "reproduce": result.how,
        "seconds": round(result.took, 3),
        "log": result.log,
    }
