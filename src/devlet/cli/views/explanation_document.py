"""An explanation as a JSON document for programs. Empty fields are left out."""

from typing import Any

from devlet.alloc.explain.report import Explanation, NodeReport, RequestReport, Verdict
from devlet.cli.session import Document

__all__ = ["document"]


def document(found: Explanation) -> Document:
    """Return the explanation with all nodes that were examined."""
    return _set(
        fits=found.fits,
        summary=found.summary,
        claims=list(found.claims),
        causes=[{"text": text, "nodes": count} for text, count in found.causes],
        nodes=[_node(node) for node in found.nodes],
        changes=[_set(text=change.text, size=change.size, node=change.node) for change in found.changes],
    )


def _node(report: NodeReport) -> Document:
    conflict = report.conflict
    return _set(
        node=report.node,
        outcome=report.outcome,
        text=report.text,
        conflict=_set(wishes=list(conflict.wishes), text=conflict.text) if conflict else None,
        requests=[_request(request) for request in report.requests],
    )


def _request(report: RequestReport) -> Document:
    return _set(
        claim=report.claim,
        name=report.name,
        wanted=report.wanted,
        number=report.number,
        counts={kind.value: count for kind, count in report.counts.items()},
        devices=[_verdict(verdict) for verdict in report.verdicts],
    )


def _verdict(verdict: Verdict) -> Document:
    return _set(
        driver=verdict.device.driver,
        pool=verdict.device.pool,
        device=verdict.device.device,
        verdict=verdict.kind.value,
        detail=verdict.detail,
        expression=verdict.expression,
        part=verdict.part,
        holders=[{"namespace": holder.namespace, "claim": holder.claim} for holder in verdict.holders],
    )


def _set(**fields: Any) -> Document:
    return {key: value for key, value in fields.items() if value not in (None, "", [], {})}
