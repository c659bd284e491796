"""Why claims fit on a node or not. Pure, and built from the same parts as the search, so the two cannot disagree."""

from devlet.alloc.explain.explanation import explain
from devlet.alloc.explain.report import (
    Change,
    Conflict,
    Explanation,
    NodeReport,
    RequestReport,
    Verdict,
    VerdictKind,
)

__all__ = [
    "Change",
    "Conflict",
    "Explanation",
    "NodeReport",
    "RequestReport",
    "Verdict",
    "VerdictKind",
    "explain",
]
