"""What to do about one pod: the order in which obstacles are checked, claims are freed and nodes are searched. Pure.

`decide` is a generator. It yields the steps that need I/O or time, a `Search` or a write, and gets the result of each
search back. It returns an assignment or a refusal. `attempts` performs the steps; tests answer them without a cluster.

    obstacles ─▶ free unusable claims ─▶ search ─▶ assignment
                          │                 │ nowhere
                          ▼                 ▼
                       refusal ◀── search with some claims freed; give up reservations
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Protocol

from devlet.control.reservations import refusal_of
from devlet.control.scheduler import claim_checks
from devlet.control.scheduler.placing import Assignment
from devlet.control.scheduler.queue import Wake
from devlet.control.scheduler.subject import Subject
from devlet.control.taints.device_taints import TaintsOf
from devlet.control.taints.evictions import blocking
from devlet.objects.identifiers import DeviceClassName, ObjectKey
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod

__all__ = [
    "UNSCHEDULABLE",
    "Deallocate",
    "Decision",
    "GiveBack",
    "Refusal",
    "RemoveLeftOver",
    "Search",
    "Step",
    "View",
    "decide",
]


@dataclass(frozen=True, slots=True)
class Refusal:
    """The pod cannot be scheduled now.

    `wake_on` says which changes are worth another attempt. `reason` may be empty: then it is computed when it is
    reported. A `transient` refusal usually passes in a moment, so it is reported only if it lasts."""

    wake_on: Wake
    reason: str = ""
    transient: bool = False
    overlapping: bool = False


UNSCHEDULABLE: Final = Refusal(Wake.ANYTHING)
"""No node fits the pod, and freeing claims does not help."""


@dataclass(frozen=True, slots=True)
class Search:
    """Search all nodes for a place, as if the `freed` claims had no devices."""

    freed: tuple[ResourceClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class Deallocate:
    """Free the devices of a claim that no other pod uses."""

    claim: ResourceClaim


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Remove the pod's reservation of a claim, and free the devices if no other consumer is left."""

    claim: ResourceClaim


@dataclass(frozen=True, slots=True)
class RemoveLeftOver:
    """Delete the claim that an interrupted attempt created for the pod's extended resources."""

    claim: ResourceClaim


Write = Deallocate | GiveBack | RemoveLeftOver
Step = Search | Write
Decision = Generator[Step, Assignment | Refusal | None, Assignment | Refusal]
"""A search is answered with an assignment, with None, or with a refusal that ends the decision."""


class View(Protocol):
    """The state of the cluster that a decision depends on."""

    def is_in_flight(self, claim: ObjectKey) -> bool:
        """Return True if an allocation of the claim was decided and is not written yet."""
        ...

    def has_class(self, name: DeviceClassName) -> bool: ...

    def has_failed(self, claim: ResourceClaim) -> bool:
        """Return True if the claim's devices could not be attached, or not in time."""
        ...

    def lost_claims(self, pod: Pod) -> Sequence[ResourceClaim]:
        """Return the claims of a placed pod that no driver can prepare any more."""
        ...

    def overlap(self, claim: ResourceClaim) -> str:
        """Return which device of the claim is also allocated to another claim; empty if there is none."""
        ...

    @property
    def taints_of(self) -> TaintsOf: ...

    def left_over_claim(self, pod: Pod) -> ResourceClaim | None:
        """Return the claim that an earlier attempt created for the pod's extended resources."""
        ...


def decide(subject: Subject, view: View) -> Decision:
    """Decide about a pod that waits for a node, or has a node and waits for devices."""
    if (refusal := _obstacle(subject, view)) is not None:
        return refusal
    own = _used_by_no_other_pod(subject)
    if unusable := [claim for claim in own if view.has_failed(claim)] or view.lost_claims(subject.pod):
        yield from map(Deallocate, unusable)
        return Refusal(Wake.DEVICES)
    if not subject.node and (overlaps := _overlaps(subject, view)):
        yield from map(Deallocate, (claim for claim in own if claim.name in overlaps))
        yield from map(GiveBack, _shared(subject.reserved, overlaps, own))
        return Refusal(Wake.DEVICES, next(iter(overlaps.values())), transient=True, overlapping=True)
    if failed := next((each for each in subject.allocated if view.has_failed(each) and each not in own), None):
        yield from _step_back(subject)
        why = claim_checks.binding(failed).message
        return Refusal(Wake.ITSELF, f"resourceclaim {failed.name} is not usable: {why}")
    for claim in subject.unreserved:  # devices may have been tainted since the claim was allocated
        if text := blocking(claim, view.taints_of):
            if claim in own:
                yield Deallocate(claim)
                return Refusal(Wake.DEVICES)
            return Refusal(Wake.DEVICES, f"resourceclaim {claim.name} cannot be shared: {text}")
    if subject.extended and (left_over := view.left_over_claim(subject.pod)) is not None:
        yield RemoveLeftOver(left_over)
    if (found := (yield Search())) is not None:
        return found
    for freed in _candidates(own):
        if (yield Search(freed)) is not None:
            yield from map(Deallocate, freed)
            return Refusal(Wake.DEVICES)
    stepped_back = yield from _step_back(subject)
    return Refusal(Wake.DEVICES) if stepped_back else UNSCHEDULABLE


def _obstacle(subject: Subject, view: View) -> Refusal | None:
    """Return what keeps the pod from every node."""
    for claim in subject.waiting:
        key = (claim.metadata.namespace, claim.metadata.name)
        if view.is_in_flight(key):
            return Refusal(Wake.ITSELF, claim_checks.IN_FLIGHT.format(*key), transient=True)
        if text := claim_checks.missing_class(claim, view.has_class):
            return Refusal(Wake.DEVICES, text)
    for claim in subject.unreserved:
        if text := refusal_of(claim):
            return Refusal(Wake.ITSELF, text)
    return None


def _used_by_no_other_pod(subject: Subject) -> list[ResourceClaim]:
    """Return the allocated claims whose devices may be freed for the pod. A pod with a node keeps what it has, because
    the node may have prepared it."""
    return [] if subject.node else [claim for claim in subject.allocated if subject.is_only_user(claim)]


def _overlaps(subject: Subject, view: View) -> dict[str, str]:
    return {claim.name: text for claim in subject.allocated if (text := view.overlap(claim))}


def _shared(
    claims: Iterable[ResourceClaim], names: Iterable[str], own: Sequence[ResourceClaim]
) -> Iterator[ResourceClaim]:
    return (claim for claim in claims if claim.name in names and claim not in own)


def _candidates(claims: Sequence[ResourceClaim]) -> Iterator[tuple[ResourceClaim, ...]]:
    """Yield what to free: each claim by itself, then all of them."""
    return chain(((claim,) for claim in claims), [tuple(claims)] if len(claims) > 1 else [])


def _step_back(subject: Subject) -> Generator[Step, Assignment | Refusal | None, bool]:
    """Give up what an interrupted attempt reserved for a pod that cannot use it. Return True if there was anything.

    Several pods may hold one claim like this; its devices become free when the last of them has stepped back."""
    reserved = [] if subject.node else subject.reserved
    yield from map(GiveBack, reserved)
    return bool(reserved)
