"""Ask the allocator in few words, and read its answer in few words.

    desk = Desk(slices=[{"pool": "p1", "devices": ["d1", "d2"]}], claims=[["r0 a"]])
    assert desk.ask() == [["r0 p1/d1"]]

The words are those of `shorthand`. Whatever is asked, the inventory stays as it is.
"""

from typing import Any

from devlet.alloc import Allocator, Chosen, Fit, Limits, NoFit, Outcome, Rules
from devlet.alloc.inventory import DeviceEntry
from devlet.alloc.problems import read_problem
from devlet.objects.documents import Document
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.node import Node
from tests.support.allocation.shorthand import identity, problem

__all__ = ["Desk", "words"]


class Desk:
    """A problem with the allocator for it; `document` is the problem written out, for what words cannot say."""

    def __init__(self, *, rules: Rules = Rules(), document: Document | None = None, **short: Any) -> None:
        self.document = document or problem({"case": "desk", **short})
        read = read_problem(self.document)
        self.node: Node = read.nodes[0]
        self.claims: tuple[ResourceClaim, ...] = read.claims
        self.inventory = read.inventory
        self.allocator = Allocator(read.inventory, read.features, rules)

    def outcome(self, limits: Limits = Limits()) -> Outcome:
        return self.allocator.allocate(self.node, self.claims, limits)

    def ask(self, limits: Limits = Limits()) -> list[list[str]] | NoFit:
        """The devices of each claim as words, such as `r0 p1/d1` or `r0/s1 b/p1/d1`."""
        outcome = self.outcome(limits)
        return [[words(each) for each in chosen] for chosen in outcome.chosen] if isinstance(outcome, Fit) else outcome

    def fits(self) -> bool:
        return isinstance(self.outcome(), Fit)

    def entry(self, device: str) -> DeviceEntry:
        """`p1/d1` or `b/p1/d1`; the first if there are several."""
        found = identity(device)
        key = DeviceIdentity(DriverName(found["driver"]), PoolName(found["pool"]), DeviceName(found["device"]))
        return self.inventory.find(key)[0]


def words(chosen: Chosen) -> str:
    place = str(chosen.entry.identity).replace(".example.com", "").removeprefix("a/")
    return f"{chosen.step.full_name} {place}"
