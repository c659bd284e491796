"""The lease that shows that this node is alive: kube-node-lease/NODE, renewed every ten seconds.

A cluster declares a node unreachable if it sees neither a renewal nor a write of the Node's status for about fifty
seconds. So a renewal that fails is retried quickly, and until it succeeds. The first failure of a series and its end
are logged. The lease is owned by the Node and is deleted with it. It is left as it is when devlet stops, because a
restart takes less time than the lease lasts.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskStatus

from devlet.cluster.client import Cluster
from devlet.errors import AlreadyExists, Conflict, DevletError, NotFound, Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.objects.documents import Document
from devlet.objects.identifiers import NodeName
from devlet.objects.kinds import LEASES
from devlet.objects.types.core import NODE_LEASES
from devlet.objects.values.timestamps import format_micro_time

__all__ = ["NodeLease", "Settings", "renewed"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    duration: int = 40  # seconds, as the kubelet
    interval: float = 10.0  # seconds from one renewal to the next
    timeout: float = 10.0  # seconds for one try
    retry: Backoff = field(default=Backoff(0.2, 7.0))  # as the kubelet


class NodeLease:
    """`owner` returns the UID of the Node, or None while there is none."""

    def __init__(
        self,
        cluster: Cluster,
        name: NodeName,
        owner: Callable[[], str | None],
        clock: Clock,
        settings: Settings = Settings(),
    ) -> None:
        self._cluster = cluster
        self._name = name
        self._owner = owner
        self._clock = clock
        self._settings = settings
        self._known: Document | None = None  # as it was last written

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Renew the lease until cancelled. Ready at once: no other part depends on it."""
        task_status.started()
        while True:
            await self._until_renewed()
            await self._clock.sleep(self._settings.interval)

    async def _until_renewed(self) -> None:
        failures = 0
        for delay in self._settings.retry.delays(random.random):
            try:
                await self._renew()
            except DevletError as e:
                log.log(
                    logging.DEBUG if failures else logging.WARNING, "lease not renewed", extra=facts(err=e, delay=delay)
                )
                failures += 1
                await self._clock.sleep(delay)
            else:
                break
        if failures:
            log.info("lease renewed again", extra=facts(failures=failures))

    async def _renew(self) -> None:
        try:
            with anyio.fail_after(self._settings.timeout):
                self._known = await self._written()
        except TimeoutError as e:
            raise Unavailable(f"lease {NODE_LEASES}/{self._name}: no answer in {self._settings.timeout:g} s") from e

    async def _written(self) -> Document:
        known, self._known = self._known, None
        try:
            return await self._write(known or await self._read())
        except (NotFound, AlreadyExists, Conflict):  # another writer was faster: read it again
            return await self._write(await self._read())

    async def _write(self, before: Document | None) -> Document:
        now = format_micro_time(self._clock.now())
        wanted = renewed(before, self._name, self._owner(), self._settings.duration, now)
        if before is None:
            return await self._cluster.create(LEASES, wanted, NODE_LEASES)
        return await self._cluster.update(LEASES, wanted)

    async def _read(self) -> Document | None:
        try:
            return await self._cluster.get(LEASES, self._name, NODE_LEASES)
        except NotFound:
            return None


def renewed(before: Document | None, name: str, owner: str | None, duration: int, now: str) -> Document:
    """Return the lease to write. Fields of other writers stay, except for owners that were earlier Nodes of this
    name."""
    metadata = dict((before or {}).get("metadata") or {"name": name, "namespace": NODE_LEASES})
    if owner is not None:
        others = [each for each in metadata.get("ownerReferences") or () if each.get("kind") != "Node"]
        node = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": owner}
        metadata["ownerReferences"] = [*others, node]
    spec = {"holderIdentity": name, "leaseDurationSeconds": duration, "renewTime": now}
    return {**(before or {}), "metadata": metadata, "spec": {**((before or {}).get("spec") or {}), **spec}}
