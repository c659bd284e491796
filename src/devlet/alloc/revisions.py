"""When something changed for which node, so that what was derived for the others stays."""

from collections.abc import Iterable

from devlet.objects.identifiers import NodeName

__all__ = ["Revisions"]


class Revisions:
    """`now` is the newest one."""

    def __init__(self) -> None:
        self.now = 0
        self._everywhere = 0
        self._nodes: dict[NodeName, int] = {}

    def changed(self, nodes: Iterable[NodeName] | None) -> None:
        """For these nodes, or for all."""
        self.now += 1
        if nodes is None:
            self._everywhere = self.now
            self._nodes.clear()
        else:
            for node in nodes:
                self._nodes[node] = self.now

    def of(self, node: NodeName) -> int:
        """Of the last change that was for the node."""
        return self._nodes.get(node, self._everywhere)
