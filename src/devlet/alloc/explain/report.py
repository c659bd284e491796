"""The parts of an explanation, for commands that print it and programs that read it.

If a claim or pod does not fit on a node, the conflict is the smallest set of wishes that cannot be satisfied together.
Each device has a verdict for each request. Changes that would make the claim fit are listed with the smallest first.
"""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from devlet.alloc.inventory import Holder
from devlet.objects.identifiers import DeviceIdentity

__all__ = ["Change", "Conflict", "Explanation", "NodeReport", "RequestReport", "Verdict", "VerdictKind"]


class VerdictKind(StrEnum):
    """Why a request cannot have a device, in the order in which the questions are asked: the first that applies
    counts."""

    CHOSEN = "chosen"
    FREE = "free"  # the device could be used: it was passed over, or there are not enough of them
    POOL_OBSOLETE = "pool-obsolete"
    POOL_INCOMPLETE = "pool-incomplete"
    POOL_INVALID = "pool-invalid"
    OTHER_NODE = "other-node"
    BINDING_CONDITIONS = "binding-conditions"  # the gate of binding conditions is off
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
    """Why a request can or cannot have a device. `expression` is the selector, `part` the part of it that is false or
    fails."""

    device: DeviceIdentity
    kind: VerdictKind
    detail: str = ""
    expression: str = ""
    part: str = ""
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestReport:
    """A request, or one of its alternatives: `claim`, `name` such as `gpu` or `gpu/big`, and `wanted` in words.

    `elsewhere` counts devices of other nodes, if there are too many to list.
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
    """Wishes that cannot be satisfied together, all of them necessary. `text` says so in one sentence.

    `cause` is the same sentence without the details that differ between nodes, so that nodes can be counted by
    cause.
    """

    wishes: tuple[str, ...]
    text: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A change that would make the claims fit. Changes are ordered by `size`: the cheapest comes first."""

    text: str
    size: int
    node: str = ""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """The explanation for one node. `outcome` is fit, no-fit, error (the claims are invalid) or unknown (the search was
    given up)."""

    node: str
    outcome: str
    text: str
    requests: tuple[RequestReport, ...] = ()
    conflict: Conflict | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole explanation. `summary` is one line; `causes` are the reasons with the number of nodes each excludes,
    most first."""

    claims: tuple[str, ...]
    fits: bool
    summary: str
    nodes: tuple[NodeReport, ...]
    causes: tuple[tuple[str, int], ...] = ()
    changes: tuple[Change, ...] = ()
