"""The slices of this node in the cluster, for the views of the node, and when they will be deleted.

If the cluster does not answer, the other views are still shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import anyio

from devlet.cluster.client import Cluster, ListOptions
from devlet.errors import DevletError
from devlet.objects.documents import Document
from devlet.objects.identifiers import DriverName, NodeName
from devlet.objects.kinds import RESOURCE_SLICES

__all__ = ["NodeSlices", "Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    ask: float = 2.0  # seconds; a person waits for it


class Wipes(Protocol):
    def records(self) -> Mapping[DriverName, datetime]: ...


class NodeSlices:
    """`wipes` knows when the slices of a driver will be deleted."""

    def __init__(self, cluster: Cluster, node: NodeName, wipes: Wipes, settings: Settings = Settings()) -> None:
        self._cluster = cluster
        self._options = ListOptions(field_selector=f"spec.nodeName={node}")
        self._wipes = wipes
        self._settings = settings

    async def slices(self) -> list[Document] | None:
        with anyio.move_on_after(self._settings.ask):
            try:
                return list((await self._cluster.list(RESOURCE_SLICES, options=self._options)).items)
            except DevletError:
                return None
        return None

    def records(self) -> Mapping[DriverName, datetime]:
        return self._wipes.records()
