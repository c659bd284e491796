"""The nodes in the order in which they are searched, and what pods use of each.

A node's object changes with every heartbeat. The allocator looks only at its labels, so it gets the same object as long
as they are the same, and keeps what it derived from it.
"""

from collections.abc import Mapping, Sequence

from devlet.alloc import Allocator, Scan
from devlet.control.scheduler import fit
from devlet.control.scheduler.fit import NodeUse, NodeView, PodNeeds
from devlet.control.scheduler.pod_affinity import AffinityProfile, LabelsOf, PlacedPods, TopologyFilter
from devlet.objects.identifiers import NodeName, PodUID
from devlet.objects.types.node import Node

__all__ = ["NodeEntry", "NodeTable"]


class NodeEntry:
    """A node: `node` as the allocator knows it, `view` as it is now, and what its pods use."""

    __slots__ = ("node", "use", "view")

    def __init__(self, node: Node, view: NodeView, use: NodeUse) -> None:
        self.node = node
        self.view = view
        self.use = use

    @property
    def name(self) -> NodeName:
        return self.node.name


class NodeTable:
    """All nodes. `namespace_labels` is for affinity terms that select pods by the labels of their namespace."""

    def __init__(self, allocator: Allocator, namespace_labels: LabelsOf = lambda _: {}) -> None:
        self._allocator = allocator
        self._placed = PlacedPods(self._labels, namespace_labels)
        self._entries: dict[NodeName, NodeEntry] = {}
        self._uses: dict[NodeName, NodeUse] = {}
        self._where: dict[PodUID, NodeName] = {}
        self._order: Sequence[NodeEntry] | None = None
        self._scan: Scan | None = None

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> Sequence[NodeEntry]:
        """Return the nodes by index of `scan`."""
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
        """Return the index of a node in `entries`."""
        return next((i for i, entry in enumerate(self.entries) if entry.name == name), None)

    def put(self, node: Node) -> bool:
        """Add or replace a node. Return True if anything relevant to scheduling changed."""
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
        """Remove a node. Its pods stay counted, because they may still be there when the node comes back."""
        if self._entries.pop(name, None) is not None:
            self._order = None
            if not self._uses[name].count:
                del self._uses[name]

    def occupy(self, pod: PodUID, node: NodeName, needs: PodNeeds) -> None:
        """Count a pod on its node, or on the one that was chosen for it, and on no other."""
        if self._where.get(pod) == node:
            return
        self.leave(pod)
        self._where[pod] = node
        self._use(node).add(pod, needs.amounts, needs.ports)
        self._placed.add(pod, node, needs.affinity)

    def leave(self, pod: PodUID) -> bool:
        """Stop counting a pod. Return True if it was counted."""
        node = self._where.pop(pod, None)
        if node is None:
            return False
        self._placed.remove(pod)
        use = self._uses[node]
        use.remove(pod)
        if not use.count and node not in self._entries:
            del self._uses[node]
        return True

    def where(self, pod: PodUID) -> NodeName | None:
        return self._where.get(pod)

    def relabel(self, pod: PodUID, needs: PodNeeds) -> None:
        """Note the new labels of a pod, which affinity terms of other pods may match."""
        if node := self._where.get(pod):
            self._placed.add(pod, node, needs.affinity)

    def topology_filter(self, pod: AffinityProfile) -> TopologyFilter | None:
        """Compute where pod affinity allows the pod; None if it allows every node."""
        return self._placed.topology_filter(pod)

    def is_affected_by_placed_pods(self, pod: AffinityProfile) -> bool:
        return self._placed.affect(pod)

    def _labels(self, node: str) -> Mapping[str, str]:
        entry = self.get(node)
        return entry.view.labels if entry else {}

    def _use(self, node: NodeName) -> NodeUse:
        return self._uses.setdefault(node, NodeUse())
