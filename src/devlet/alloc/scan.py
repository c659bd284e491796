"""Find which of many nodes can satisfy some claims, repeatedly, as devices come and go.

Most claims have one plain request, and for these counting is enough: the matching devices of a node are looked up once,
and each query then costs one bit operation per slice. Other claims need a search.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain, compress
from typing import Final, Literal

from devlet.alloc.allocator import Allocator, Fit, Wanted
from devlet.alloc.inventory import SliceEntry
from devlet.alloc.revisions import Revisions
from devlet.alloc.search import Limits
from devlet.alloc.selectors import SelectorSet
from devlet.errors import InvalidInput
from devlet.objects.types.node import Node

__all__ = ["Scan"]

ROWS_MAX: Final = 256

AT_ONCE: Final = 256

_Part = tuple[SliceEntry, int]
_Row = _Part | list[_Part] | Literal[False]
"""The slice of a node with the bits of the devices that match, or several of them. False: counting cannot tell."""


class _Rows:
    """Per node: its row, or None if it was not examined yet; and whether it is `open` or has no free device left.

    A node gains devices only when a claim is released or a slice changes. Then all nodes are open again.
    """

    __slots__ = ("open", "releases", "revision", "rows")

    def __init__(self, revision: int, count: int) -> None:
        self.revision = revision
        self.rows: list[_Row | None] = [None] * count
        self.open = bytearray(count)
        self.releases = -1

    def reopen(self, releases: int) -> None:
        if self.releases != releases:
            self.releases = releases
            self.open[:] = b"\1" * len(self.open)

    def open_ones(self, start: int) -> Iterable[int]:
        """Return the indices of the open nodes, starting at `start` and wrapping around."""
        count = len(self.open)
        start %= count or 1
        return compress(chain(range(start, count), range(start)), self.open[start:] + self.open[:start])


class Scan:
    """The nodes in a fixed order. If nodes come, go or change, create another scan."""

    def __init__(self, allocator: Allocator, nodes: Sequence[Node]) -> None:
        self.allocator = allocator
        self.nodes = nodes
        self._rows: OrderedDict[SelectorSet, _Rows] = OrderedDict()

    def warm(self) -> None:
        """Gather the pools of all nodes now instead of in the first query. Errors are left for that query to report."""
        for node in self.nodes:
            with suppress(InvalidInput):
                self.allocator.layout(node)

    def feasible(
        self,
        wanted: Wanted,
        start: int,
        enough: int,
        limits: Limits = Limits(),
        admits: Callable[[int], bool] = lambda index: True,
    ) -> list[int]:
        """Return the indices of the first nodes where the claims fit, starting at `start` and wrapping around, at most
        `enough`. Nodes that `admits` rejects are skipped.

        Raises InvalidInput if the claims cannot be allocated on any node.
        """
        if wanted.single is None:
            return self._searched(wanted, start, enough, limits, admits)
        return self._counted(wanted, start, enough, limits, admits)

    def _searched(
        self, wanted: Wanted, start: int, enough: int, limits: Limits, admits: Callable[[int], bool]
    ) -> list[int]:
        found: list[int] = []
        for i in self._around(start):
            if admits(i) and isinstance(self.allocator.allocate_wanted(self.nodes[i], wanted, limits), Fit):
                found.append(i)
                if len(found) >= enough:
                    break
        return found

    def _counted(
        self, wanted: Wanted, start: int, enough: int, limits: Limits, admits: Callable[[int], bool]
    ) -> list[int]:
        assert wanted.single is not None
        alternative = wanted.single.alternatives[0]
        number, rows = alternative.count, self._rows_of(alternative.selectors)
        found: list[int] = []
        for i in rows.open_ones(start):
            row = rows.rows[i]
            if type(row) is tuple:
                free: int | None = (row[1] & ~row[0].taken).bit_count()
            else:
                free = self._free(rows, i, alternative.selectors, limits)
            if free is None:
                fits = isinstance(self.allocator.allocate_wanted(self.nodes[i], wanted, limits), Fit)
            else:
                fits = free >= number
                if not free:
                    rows.open[i] = 0
            if fits and admits(i):
                found.append(i)
                if len(found) >= enough:
                    break
        return found

    def _free(self, rows: "_Rows", i: int, selectors: SelectorSet, limits: Limits) -> int | None:
        """Return how many devices of the node are free and match; None if counting cannot determine it."""
        row = rows.rows[i]
        if row is None:
            self._look(rows.rows, i, selectors, limits)
            row = rows.rows[i]
        if type(row) is tuple:
            return (row[1] & ~row[0].taken).bit_count()
        if type(row) is list:
            return sum((bits & ~entry.taken).bit_count() for entry, bits in row)
        return None

    def _around(self, start: int) -> Iterable[int]:
        start %= len(self.nodes) or 1
        return chain(range(start, len(self.nodes)), range(start))

    def _look(self, rows: list[_Row | None], first: int, selectors: SelectorSet, limits: Limits) -> None:
        """Fill in several rows at once, because selectors are evaluated faster for many slices."""
        some = range(first, min(first + AT_ONCE, len(self.nodes)))
        slices = [slice.entry for i in some for slice in self.allocator.layout(self.nodes[i]).slices]
        self.allocator.selectors.match_many(dict.fromkeys(slices), selectors, limits.give_up)
        for i in some:
            rows[i] = self._row(self.nodes[i], selectors, limits)

    def _rows_of(self, selectors: SelectorSet) -> _Rows:
        revisions = self.allocator.inventory.revisions
        rows = self._rows.get(selectors)
        if rows is None:
            rows = self._rows[selectors] = _Rows(revisions.now, len(self.nodes))
            if len(self._rows) > ROWS_MAX:
                self._rows.popitem(last=False)
        elif rows.revision != revisions.now:
            self._forget(rows, revisions)
        rows.reopen(self.allocator.inventory.releases)
        return rows

    def _forget(self, rows: _Rows, revisions: Revisions) -> None:
        """Drop the rows of nodes whose slices changed."""
        for i, node in enumerate(self.nodes):
            if revisions.of(node.name) > rows.revision:
                rows.rows[i] = None
                rows.open[i] = 1
        rows.revision = revisions.now

    def _row(self, node: Node, selectors: SelectorSet, limits: Limits) -> _Row:
        row: list[_Part] = []
        errors_count = not self.allocator.rules.errors_do_not_match
        hides_bindings = not self.allocator.features.device_binding_and_status
        for slice in self.allocator.layout(node).slices:
            match = self.allocator.selectors.match(slice.entry, selectors, limits.give_up)
            if not slice.entry.is_plain or (match.failing and errors_count):
                return False
            visible = ~slice.entry.bindings if hides_bindings else -1
            if bits := match.matching & slice.reachable & visible:
                row.append((slice.entry, bits))
        return row[0] if len(row) == 1 else row
