"""When something last changed for each node, so that values derived for other nodes stay valid."""

from collections.abc import Iterable

from devlet.objects.identifiers import NodeName

__all__ = ["Revisions"]


class Revisions:
    """Counts changes per node. `now` is the latest revision."""

    def __init__(self) -> None:
        self.now = 0
        self._everywhere = 0
        self._nodes: dict[NodeName, int] = {}

    def changed(self, nodes: Iterable[NodeName] | None) -> None:
        """Note a change for these nodes, or for all."""
        self.now += 1
        if nodes is None:
            self._everywhere = self.now
            self._nodes.clear()
        else:
            for node in nodes:
                self._nodes[node] = self.now

    def of(self, node: NodeName) -> int:
        """Return the revision of the last change for the node."""
        return self._nodes.get(node, self._everywhere)
