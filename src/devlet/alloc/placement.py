"""Place many claims on many nodes. Claims are placed one after the other and keep their devices.

The modes differ in where a claim goes:

fill         the first node where the claim fits
fill-rotate  the same, starting at the node of the previous claim
scheduler    as kube-scheduler scans: from a moving start until enough feasible nodes are found; the first one wins
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, Literal

from devlet.alloc.allocator import Fit, Wanted
from devlet.alloc.results import held_devices
from devlet.alloc.scan import Scan
from devlet.alloc.search import Limits
from devlet.cel.program import Interrupted
from devlet.errors import InvalidInput
from devlet.objects.identifiers import NodeName
from devlet.objects.types.claim import ResourceClaim

__all__ = ["MODES", "Mode", "feasible", "nodes_to_find", "place"]

Mode = Literal["fill", "fill-rotate", "scheduler"]
MODES: Final[tuple[Mode, ...]] = ("fill", "fill-rotate", "scheduler")


def place(
    scan: Scan,
    claims: Sequence[ResourceClaim],
    mode: Mode,
    new_share_id: Callable[[], str],
    limits: Limits = Limits(),
) -> Iterator[NodeName | None]:
    """The node of each claim, None if there is none. What is placed is held in the allocator's inventory."""
    allocator, nodes = scan.allocator, scan.nodes
    enough = nodes_to_find(len(nodes)) if mode == "scheduler" else 1
    start = 0
    for claim in claims:
        wanted = allocator.read([claim])
        found = feasible(scan, wanted, start, enough, limits)
        if mode == "scheduler":
            start = (found[-1] + 1 if len(found) == enough else start) % max(len(nodes), 1)
        elif mode == "fill-rotate" and found:
            start = found[0]
        outcome = allocator.allocate_wanted(nodes[found[0]], wanted, limits) if found else None
        if not isinstance(outcome, Fit):
            yield None
            continue
        devices = held_devices(outcome.chosen[0], new_share_id)
        allocator.inventory.hold_devices(claim.metadata.namespace, claim.metadata.name, devices)
        yield outcome.node.name


def feasible(
    scan: Scan,
    wanted: Wanted,
    start: int,
    enough: int,
    limits: Limits = Limits(),
    admits: Callable[[int], bool] = lambda index: True,
) -> list[int]:
    """Find nodes like `Scan.feasible`, except that an error on one node does not end the search on the others."""
    try:
        return scan.feasible(wanted, start, enough, limits, admits)
    except Interrupted:
        return []
    except InvalidInput:
        count = len(scan.nodes)
        order = [(start + i) % count for i in range(count)]
        return list(islice((i for i in order if admits(i) and _fits(scan, wanted, i, limits)), enough))


def _fits(scan: Scan, wanted: Wanted, index: int, limits: Limits) -> bool:
    try:
        return isinstance(scan.allocator.allocate_wanted(scan.nodes[index], wanted, limits), Fit)
    except InvalidInput:
        return False


def nodes_to_find(count: int) -> int:
    """Return how many feasible nodes kube-scheduler looks for: up to 100 nodes all, then a percentage that falls with
    the number of nodes."""
    if count <= 100:
        return count
    share = max(50 - count // 125, 5)
    return max(count * share // 100, 100)
