"""Create the default service account of each namespace, and empty namespaces that are being deleted.

The objects of a namespace are deleted kind by kind; when none is left, the namespace is released. Objects that take
longer, such as a pod that is being stopped or an object with a finalizer, are checked again later.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskStatus

from devlet.cluster.client import Cluster, ListOptions
from devlet.cluster.informer import Informer
from devlet.cluster.quarantine import Quarantine
from devlet.errors import AlreadyExists, Conflict, DevletError, NotFound
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.objects.documents import Document, copy
from devlet.objects.kinds import NAMESPACES, SERVICE_ACCOUNTS, Catalogue, Resource

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    default_service_accounts: bool = True
    finalize: bool = True
    retry: Backoff = field(default=Backoff(0.05, 5.0))


class NamespaceController:
    def __init__(
        self,
        cluster: Cluster,
        catalogue: Catalogue,
        clock: Clock,
        settings: Settings = Settings(),
        quarantine: Quarantine | None = None,
    ) -> None:
        self._quarantine = quarantine or Quarantine()
        self._cluster = cluster
        self._catalogue = catalogue
        self._clock = clock
        self._settings = settings
        self._namespaces = Informer(cluster, NAMESPACES, lambda document: document, quarantine=quarantine)
        self._busy: set[str] = set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._namespaces.run)
            async with self._namespaces.changes() as changes:
                task_status.started()
                async for change in changes:
                    name = change.key[1]
                    if change.new is not None and name not in self._busy:
                        self._busy.add(name)
                        tasks.start_soon(self._manage, name)

    async def _manage(self, name: str) -> None:
        """Work on one namespace until there is nothing left to do."""
        attempt = 0
        try:
            while (namespace := self._namespaces.get(name)) is not None:
                try:
                    if await self._sync(namespace):
                        return
                except DevletError as e:
                    log.warning("namespace not synced", extra=facts(namespace=name, err=e))
                except Exception as e:  # the other namespaces are still handled
                    self._quarantine.add(NAMESPACES, namespace, e, handler=self._sync.__qualname__)
                await self._clock.sleep(self._settings.retry.delay(attempt, random.random))
                attempt += 1
        finally:
            self._busy.discard(name)

    async def _sync(self, namespace: Document) -> bool:
        """Return True if nothing is left to do."""
        if "deletionTimestamp" not in namespace["metadata"]:
            if self._settings.default_service_accounts:
                await self._ensure_service_account(namespace["metadata"]["name"])
            return (
                "deletionTimestamp"
                not in (self._namespaces.get(namespace["metadata"]["name"]) or namespace)["metadata"]
            )
        return not self._settings.finalize or await self._empty(namespace)

    async def _ensure_service_account(self, namespace: str) -> None:
        try:
            await self._cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace)
        except (AlreadyExists, NotFound):
            pass

    async def _empty(self, namespace: Document) -> bool:
        name = namespace["metadata"]["name"]
        left = [resource for resource in namespaced(self._catalogue) if not await self._emptied(resource, name)]
        if left:
            return False
        released = copy(namespace)
        released["spec"] = {**released.get("spec", {}), "finalizers": []}
        try:
            await self._cluster.update(NAMESPACES, released, subresource="finalize")
        except NotFound:
            pass
        except Conflict:
            return False
        log.info("namespace released", extra=facts(namespace=name))
        return True

    async def _emptied(self, resource: Resource, namespace: str) -> bool:
        one = ListOptions(limit=1)
        if not (await self._cluster.list(resource, namespace, one)).items:
            return True
        await self._cluster.delete_collection(resource, namespace)
        return not (await self._cluster.list(resource, namespace, one)).items


def namespaced(catalogue: Catalogue) -> Iterable[Resource]:
    return (Resource(kind, kind.storage_version) for kind in catalogue if kind.namespaced)
