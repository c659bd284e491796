"""When a pod must leave its devices and why, and whether a claim may be shared: pure functions of claims and taints.

An allocated claim keeps the tolerations that it was allocated with, in each result. A toleration without an effect
tolerates every effect, here as in allocation. (Kubernetes ignores such a toleration when it evicts.)
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from devlet.control.taints.device_taints import NO_EXECUTE, Taint, TaintsOf
from devlet.errors import InvalidInput
from devlet.objects.identifiers import DeviceIdentity
from devlet.objects.pods.tolerations import tolerates
from devlet.objects.types.claim import DeviceResult, DeviceToleration, ResourceClaim
from devlet.objects.types.slice import DeviceTaint
from devlet.objects.values.timestamps import parse_time

__all__ = ["Cause", "Eviction", "blocking", "eviction", "tolerated_until"]

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)  # for a taint without a valid timeAdded


class Cause(NamedTuple):
    device: DeviceIdentity
    taint: Taint

    def __str__(self) -> str:
        return f"device {self.device} has taint {self.taint}"


@dataclass(frozen=True, slots=True)
class Eviction:
    """`causes` are all taints that are not tolerated for ever, not only the first one to take effect."""

    when: datetime
    causes: tuple[Cause, ...]

    @property
    def rules(self) -> frozenset[str]:
        return frozenset(cause.taint.rule for cause in self.causes if cause.taint.rule)

    def __str__(self) -> str:
        return ", ".join(map(str, self.causes))


def eviction(claims: Iterable[ResourceClaim], taints_of: TaintsOf) -> Eviction | None:
    """Return the eviction of a pod that uses these claims; None if it may stay."""
    found = [due for claim in claims for result in claim.results for due in _due(result, taints_of)]
    if not found:
        return None
    causes = dict.fromkeys(cause for _, cause in found)
    return Eviction(min(when for when, _ in found), tuple(causes))


def blocking(claim: ResourceClaim, taints_of: TaintsOf) -> str | None:
    """Return why no further pod may use an allocated claim; None if it may.

    A taint also keeps out new pods that find their claim allocated: the API promises so, although Kubernetes looks at
    taints only when it allocates."""
    for result in claim.results:
        for taint in taints_of(result.identity):
            if not any(tolerates(toleration, taint.taint) for toleration in result.tolerations):
                return f"{Cause(result.identity, taint)}, which the claim does not tolerate"
    return None


def _due(result: DeviceResult, taints_of: TaintsOf) -> Iterator[tuple[datetime, Cause]]:
    for taint in taints_of(result.identity):
        if taint.taint.effect == NO_EXECUTE:
            when = tolerated_until(taint.taint, result.tolerations)
            if when is not None:
                yield when, Cause(result.identity, taint)


def tolerated_until(taint: DeviceTaint, tolerations: Iterable[DeviceToleration]) -> datetime | None:
    """Return until when a taint is tolerated; None if for ever. Of several tolerations with an end, the first one
    counts."""
    seconds = [toleration.toleration_seconds for toleration in tolerations if tolerates(toleration, taint)]
    if None in seconds:
        return None
    try:
        return _since(taint) + timedelta(seconds=max(0, min((s for s in seconds if s is not None), default=0)))
    except OverflowError:
        return None


def _since(taint: DeviceTaint) -> datetime:
    try:
        return parse_time(taint.time_added)
    except InvalidInput:
        return _LONG_AGO
