"""The durations and limits of the scheduler. Durations are in seconds."""

from dataclasses import dataclass, field

from devlet.kit.backoff import Backoff

__all__ = ["ReportTimes", "SearchLimits", "Settings"]


@dataclass(frozen=True, slots=True)
class SearchLimits:
    quick: float = 0.02  # for a search in the event loop; a longer one is repeated in a thread
    node: float = 10.0  # for the search on one node, as in kube-scheduler
    pod: float = 30.0  # for the search on all nodes, while other pods wait
    explain: float = 0.5  # for finding a reason


@dataclass(frozen=True, slots=True)
class ReportTimes:
    transient: float = 0.5  # until a transient refusal is reported, such as a claim not created yet
    again: float = 1.0  # between two reports for one pod
    refresh: float = 5.0  # until all reasons are updated after capacity was taken


@dataclass(frozen=True, slots=True)
class Settings:
    """`names` are the values of `spec.schedulerName` that select this scheduler."""

    names: frozenset[str] = frozenset({"default-scheduler", "devlet"})
    all_placed: bool = False  # allocate the claims of all placed pods, whatever scheduler they name
    candidates: int = 5  # feasible nodes to rank for pods without preferences
    search: SearchLimits = SearchLimits()
    reports: ReportTimes = ReportTimes()
    binding_timeout: float = 600.0  # for a device's binding conditions, as in kube-scheduler
    outage: float = 30.0  # to wait for an informer that lost its watch before the next attempt
    own_write: float = 30.0  # until the informer must have seen our own write to a claim
    at_once: int = 256  # pods that are written at the same time
    write_tries: int = 5  # of a claim that other clients modify
    undo_timeout: float = 10.0  # for undoing the writes of a failed binding
    retry: Backoff = field(default=Backoff(0.2, 10.0))  # after an error; a refused pod is retried after a change
