"""Every duration and limit of the scheduler."""

from dataclasses import dataclass, field

from devlet.kit.backoff import Backoff

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """`names` are those that pods ask for with `spec.schedulerName`."""

    names: frozenset[str] = frozenset({"default-scheduler", "devlet"})
    all_placed: bool = False  # whether claims of all pods that were put on a node are ours to allocate
    candidates: int = 5  # feasible nodes among which the best is taken, for pods that prefer none
    binding_timeout: float = 600.0  # seconds for a device's binding conditions, as kube-scheduler
    blind: float = 30.0  # seconds for which a copy that lost its watch is waited for before pods are decided on
    own_write: float = 30.0  # seconds until a write of ours must have come back in the watch of claims
    quick: float = 0.02  # seconds that a search may hold up everybody else; then it goes on in a thread
    filter_timeout: float = 10.0  # seconds for the search on one node, as kube-scheduler
    attempt_timeout: float = 30.0  # seconds for one pod on all nodes: others wait for their turn
    explain_timeout: float = 0.5  # seconds for the search for a reason
    report_refresh: float = 5.0  # seconds after something was taken away until those who wait are told a new reason
    report_again: float = 1.0  # seconds until a pod that knows why it waits is told another reason
    report_after: float = 0.5  # seconds that a claim may take to be made before a pod says that it waits for it
    at_once: int = 256  # pods that are being bound
    write_tries: int = 5  # of a claim that others write, too
    undo_timeout: float = 10.0  # seconds to take back what a failed binding wrote
    retry: Backoff = field(default=Backoff(0.2, 10.0))  # after an error, not after a no
