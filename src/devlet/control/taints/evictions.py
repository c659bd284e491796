"""When a pod has to leave its devices, and why: a pure function of its claims and of the devices' taints.

A claim that was allocated keeps the tolerations it was allocated with, in each result. A toleration without effect is
one for every effect, here as in allocation (the reference evicts in spite of it).
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

__all__ = ["Cause", "Eviction", "eviction", "tolerated_until"]

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)  # for a taint that does not say since when


class Cause(NamedTuple):
    device: DeviceIdentity
    taint: Taint

    def __str__(self) -> str:
        return f"device {self.device} has taint {self.taint}"


@dataclass(frozen=True, slots=True)
class Eviction:
    """`causes` are all taints that are not tolerated for ever, not only the one that is the first to strike."""

    when: datetime
    causes: tuple[Cause, ...]

    @property
    def rules(self) -> frozenset[str]:
        return frozenset(cause.taint.rule for cause in self.causes if cause.taint.rule)

    def __str__(self) -> str:
        return ", ".join(map(str, self.causes))


def eviction(claims: Iterable[ResourceClaim], taints_of: TaintsOf) -> Eviction | None:
    """For whoever uses all of these claims. None: it may stay."""
    found = [due for claim in claims for result in claim.results for due in _due(result, taints_of)]
    if not found:
        return None
    causes = dict.fromkeys(cause for _, cause in found)
    return Eviction(min(when for when, _ in found), tuple(causes))


def _due(result: DeviceResult, taints_of: TaintsOf) -> Iterator[tuple[datetime, Cause]]:
    for taint in taints_of(result.identity):
        if taint.taint.effect == NO_EXECUTE:
            when = tolerated_until(taint.taint, result.tolerations)
            if when is not None:
                yield when, Cause(result.identity, taint)


def tolerated_until(taint: DeviceTaint, tolerations: Iterable[DeviceToleration]) -> datetime | None:
    """None: for ever. Of several tolerations with an end, the first to end counts."""
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
