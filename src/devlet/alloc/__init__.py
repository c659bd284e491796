"""Which devices satisfy which claims. Pure: no I/O, no clock, no logging; the same input gives the same answer.

slices, classes, claims ──▶ Inventory ──▶ Allocator.allocate(node, claims) ──▶ Fit or NoFit ──▶ allocation_documents
                                                    │
                                          Scan: many nodes     explain: why, and what would help
"""

from devlet.alloc.allocator import Allocator, Fit, NoFit, Outcome, Wanted
from devlet.alloc.features import ALL_FEATURES, Features, Rules
from devlet.alloc.inventory import Holder, Inventory
from devlet.alloc.problems import Problem, read_problem, solve_problem
from devlet.alloc.results import allocation_documents, held_devices
from devlet.alloc.scan import Scan
from devlet.alloc.search import Chosen, Limits

__all__ = [
    "ALL_FEATURES",
    "Allocator",
    "Chosen",
    "Features",
    "Fit",
    "Holder",
    "Inventory",
    "Limits",
    "NoFit",
    "Outcome",
    "Problem",
    "Rules",
    "Scan",
    "Wanted",
    "allocation_documents",
    "held_devices",
    "read_problem",
    "solve_problem",
]
