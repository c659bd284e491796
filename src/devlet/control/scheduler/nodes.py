"""The nodes in the order in which they are scanned, and what pods use of each.

A node's object changes with every heartbeat. For the allocator it is the same node as long as its labels are the same,
so it is given the same object, and what it derived from it stays.
"""

from collections.abc import Mapping, Sequence

from devlet.alloc import Allocator, Scan
from devlet.control.scheduler import fit
from devlet.control.scheduler.fit import NodeUse, NodeView, PodNeeds
from devlet.control.scheduler.neighbours import Company, LabelsOf, Neighbours, Social
from devlet.objects.identifiers import NodeName, PodUID
from devlet.objects.types.node import Node

__all__ = ["NodeEntry", "NodeTable"]


class NodeEntry:
    """`node` is for the allocator."""

    __slots__ = ("node", "use", "view")

    def __init__(self, node: Node, view: NodeView, use: NodeUse) -> None:
        self.node = node
        self.view = view
        self.use = use

    @property
    def name(self) -> NodeName:
        return self.node.name


class NodeTable:
    """`namespace_labels` is for pods that mean others by the labels of their namespace."""

    def __init__(self, allocator: Allocator, namespace_labels: LabelsOf = lambda _: {}) -> None:
        self._allocator = allocator
        self._neighbours = Neighbours(self._labels, namespace_labels)
        self._entries: dict[NodeName, NodeEntry] = {}
        self._uses: dict[NodeName, NodeUse] = {}
        self._where: dict[PodUID, NodeName] = {}
        self._order: Sequence[NodeEntry] | None = None
        self._scan: Scan | None = None

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> Sequence[NodeEntry]:
        """By index of `scan`."""
        if self._order is None:
            self._order = [self._entries[name] for name in sorted(self._entries)]
            self._scan = None
        return self._order

    @property
    def scan(self) -> Scan:
        entries = self.entries
        if self._scan is None:
            self._scan = Scan(self._allocator, [entry.node for entry in entries])
        return self._scan

    def get(self, name: str) -> NodeEntry | None:
        return self._entries.get(NodeName(name))

    def index(self, name: str) -> int | None:
        """Of a node, in `entries`."""
        return next((i for i, entry in enumerate(self.entries) if entry.name == name), None)

    def put(self, node: Node) -> bool:
        """Whether it is another node than before, to those who look for one."""
        known, view = self._entries.get(node.name), fit.node_view(node)
        if known is None:
            self._entries[node.name] = NodeEntry(node, view, self._use(node.name))
            self._order = None
            return True
        changed = known.view != view
        if known.node.metadata.labels != node.metadata.labels:
            known.node = node
            self._scan = None
        known.view = view
        return changed

    def remove(self, name: NodeName) -> None:
        """Its pods stay counted: they may be there still, when it comes back."""
        if self._entries.pop(name, None) is not None:
            self._order = None
            if not self._uses[name].count:
                del self._uses[name]

    def occupy(self, pod: PodUID, node: NodeName, needs: PodNeeds) -> None:
        """A pod is on a node, or will be. Elsewhere it is not."""
        if self._where.get(pod) == node:
            return
        self.leave(pod)
        self._where[pod] = node
        self._use(node).add(pod, needs.amounts, needs.ports)
        self._neighbours.add(pod, node, needs.social)

    def leave(self, pod: PodUID) -> bool:
        """Whether it was somewhere."""
        node = self._where.pop(pod, None)
        if node is None:
            return False
        self._neighbours.remove(pod)
        use = self._uses[node]
        use.remove(pod)
        if not use.count and node not in self._entries:
            del self._uses[node]
        return True

    def where(self, pod: PodUID) -> NodeName | None:
        return self._where.get(pod)

    def relabel(self, pod: PodUID, needs: PodNeeds) -> None:
        """Others know it by other labels from now on."""
        if node := self._where.get(pod):
            self._neighbours.add(pod, node, needs.social)

    def company(self, pod: Social) -> Company | None:
        """Where it may be, as far as other pods are concerned; None if they are not."""
        return self._neighbours.company(pod)

    def has_company_for(self, pod: Social) -> bool:
        return self._neighbours.matter_to(pod)

    def _labels(self, node: str) -> Mapping[str, str]:
        entry = self.get(node)
        return entry.view.labels if entry else {}

    def _use(self, node: NodeName) -> NodeUse:
        return self._uses.setdefault(node, NodeUse())
