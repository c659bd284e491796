"""What an explanation consists of: values that a command prints and a program reads.

A claim or pod fits on a node or not. If not, the smallest set of wishes that cannot hold together is the conflict;
each device has a verdict for each request; and some changes, the smallest first, would make it fit.
"""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from devlet.alloc.inventory import Holder
from devlet.objects.identifiers import DeviceIdentity

__all__ = ["Change", "Conflict", "Explanation", "NodeReport", "RequestReport", "Verdict", "VerdictKind"]


class VerdictKind(StrEnum):
    """In the order in which they are looked at: a device has the first one that applies."""

    CHOSEN = "chosen"
    FREE = "free"  # could be had: passed over, or not enough of them
    POOL_OBSOLETE = "pool-obsolete"
    POOL_INCOMPLETE = "pool-incomplete"
    POOL_INVALID = "pool-invalid"
    OTHER_NODE = "other-node"
    BINDING_CONDITIONS = "binding-conditions"  # their gate is off
    CLASS_SELECTOR = "class-selector"
    REQUEST_SELECTOR = "request-selector"
    SELECTOR_ERROR = "selector-error"
    IN_USE = "in-use"
    TAINT = "taint"
    CAPACITY = "capacity"
    COUNTERS = "counters"
    CONSTRAINT = "constraint"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a request can or cannot have a device. `expression` is the selector, `part` what in it is false or fails."""

    device: DeviceIdentity
    kind: VerdictKind
    detail: str = ""
    expression: str = ""
    part: str = ""
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestReport:
    """A request, or one of its alternatives (`claim`, `name` such as `gpu` or `gpu/big`); `wanted` in words.

    `elsewhere` are devices for other nodes that are too many to be listed one by one.
    """

    claim: str
    name: str
    wanted: str
    number: int
    verdicts: tuple[Verdict, ...]
    elsewhere: int = 0

    @property
    def counts(self) -> Counter[VerdictKind]:
        counts = Counter(verdict.kind for verdict in self.verdicts)
        counts[VerdictKind.OTHER_NODE] += self.elsewhere
        return +counts


@dataclass(frozen=True, slots=True)
class Conflict:
    """Wishes that cannot hold together, none of which could be left out; `text` says it in one sentence.

    `cause` is the same without what differs from node to node, so that nodes can be counted by it.
    """

    wishes: tuple[str, ...]
    text: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """Something that would make it fit. `size` orders them: what costs the least comes first."""

    text: str
    size: int
    node: str = ""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """`outcome` is fit, no-fit, error (the claims are wrong) or unknown (the search was given up)."""

    node: str
    outcome: str
    text: str
    requests: tuple[RequestReport, ...] = ()
    conflict: Conflict | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """`summary` is one line, `causes` the reasons with the number of nodes they keep away, most first."""

    claims: tuple[str, ...]
    fits: bool
    summary: str
    nodes: tuple[NodeReport, ...]
    causes: tuple[tuple[str, int], ...] = ()
    changes: tuple[Change, ...] = ()
