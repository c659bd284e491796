"""Serve custom resources as long as their definitions exist.

A stored definition adds its kind to the catalogue. A definition that is being deleted stays until its objects are gone.
A definition that cannot be served is quarantined, and the others are served.
"""

import logging

import anyio
from anyio.abc import TaskGroup, TaskStatus

from devlet.cluster.client import Cluster, ListOptions, MergePatch
from devlet.cluster.informer import Changed, Informer
from devlet.cluster.quarantine import Quarantine
from devlet.errors import Conflict, DevletError, InvalidInput, InvalidObject, NotFound
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.objects.custom_resources import CLEANUP, DEFINITION, established, kind_of
from devlet.objects.documents import Document
from devlet.objects.kinds import Catalogue, Kind, Resource

log = logging.getLogger(__name__)

DEFINITIONS = Resource(DEFINITION, DEFINITION.storage_version)
RETRY = Backoff(0.2, 5.0)  # between two checks whether the objects of a deleted definition are gone


class CustomResourceController:
    def __init__(
        self, cluster: Cluster, catalogue: Catalogue, clock: Clock, quarantine: Quarantine | None = None
    ) -> None:
        self._quarantine = quarantine or Quarantine()
        self._cluster = cluster
        self._catalogue = catalogue
        self._clock = clock
        self._definitions: Informer[Document] = Informer(
            cluster, DEFINITIONS, lambda found: found, quarantine=quarantine
        )
        self._kinds: dict[str, Kind] = {}
        self._emptying: set[str] = set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Ready when the kinds of all definitions are known."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._definitions.run)
            for definition in self._definitions.all():
                self._try_to_serve(definition)
            async with self._definitions.changes() as changes:
                task_status.started()
                async for change in changes:
                    await self._changed(change, tasks)

    async def _changed(self, change: Changed[Document], tasks: TaskGroup) -> None:
        name = change.key[1]
        try:
            if change.new is None:
                self._withdraw(name)
            elif "deletionTimestamp" in change.new["metadata"]:
                if name not in self._emptying:
                    self._emptying.add(name)
                    tasks.start_soon(self._empty, name)
            else:
                self._serve(change.new)
                await self._settle(change.new)
        except (InvalidInput, InvalidObject) as e:
            self._quarantine.add(DEFINITIONS, change.new or change.old or {}, e)
        except DevletError as e:
            log.warning("definition not synced", extra=facts(resource=name, err=e))
        except Exception as e:  # the other definitions are still served
            self._quarantine.add(DEFINITIONS, change.new or change.old or {}, e, handler=self._changed.__qualname__)

    def _withdraw(self, name: str) -> None:
        if (kind := self._kinds.pop(name, None)) is not None:
            self._catalogue.remove(kind)
            log.info("custom resource removed", extra=facts(resource=name))

    def _try_to_serve(self, definition: Document) -> None:
        """Serve a definition at the start. An error is reported when its change is handled."""
        try:
            self._serve(definition)
        except Exception as e:
            log.debug("definition not served", extra=facts(resource=definition["metadata"]["name"], err=e))

    def _serve(self, definition: Document) -> None:
        name, kind = definition["metadata"]["name"], kind_of(definition)
        if (before := self._kinds.get(name)) == kind:
            return
        self._check_names(name, kind)
        if before is not None:
            self._catalogue.remove(before)
        self._catalogue.add(kind)
        self._kinds[name] = kind
        log.info("custom resource served", extra=facts(resource=name, versions=list(kind.api_versions)))

    def _check_names(self, name: str, kind: Kind) -> None:
        """Raise InvalidInput if the definition is not named after its resource, and Conflict if another resource of the
        group already has the kind."""
        if kind.key != name:
            raise InvalidInput(f"it defines {kind.key}, which must be its name")
        for api_version in kind.api_versions:
            try:
                other = self._catalogue.of_kind(api_version, kind.kind)
            except NotFound:
                continue
            if other.kind.key != kind.key:
                raise Conflict(f'"{kind.kind}" is already in use by {other.kind.key}: choose another kind')

    async def _settle(self, definition: Document) -> None:
        """Add our finalizer, and write the status."""
        name, metadata = definition["metadata"]["name"], definition["metadata"]
        if CLEANUP not in (metadata.get("finalizers") or ()):
            finalizers = [*(metadata.get("finalizers") or ()), CLEANUP]
            patch = {"metadata": {"finalizers": finalizers, "resourceVersion": metadata["resourceVersion"]}}
            await self._cluster.patch(DEFINITIONS, name, MergePatch(patch))
        status = established(definition, self._clock.now())
        if definition.get("status") != status:
            await self._cluster.patch(DEFINITIONS, name, MergePatch({"status": status}), subresource="status")

    async def _empty(self, name: str) -> None:
        """Delete the objects of a definition that is being deleted. The other definitions are handled in the meantime,
        because an object may have finalizers that are never removed."""
        try:
            for delay in RETRY.delays(random.random):
                definition = self._definitions.get(name)
                if definition is None or "deletionTimestamp" not in definition["metadata"]:
                    return
                if await self._is_released(definition):
                    return
                await self._clock.sleep(delay)
        finally:
            self._emptying.discard(name)

    async def _is_released(self, definition: Document) -> bool:
        """Release the definition. Return False if that must be retried."""
        try:
            return await self._release(definition)
        except DevletError as e:
            log.warning("definition not emptied", extra=facts(resource=definition["metadata"]["name"], err=e))
            return False
        except Exception as e:  # the other definitions are still served
            self._quarantine.add(DEFINITIONS, definition, e, handler=self._release.__qualname__)
            return True

    async def _release(self, definition: Document) -> bool:
        """Delete the objects. If none is left, remove our finalizer and return True."""
        if (kind := self._kinds.get(definition["metadata"]["name"])) is not None:
            resource = Resource(kind, kind.storage_version)
            if (await self._cluster.list(resource, options=ListOptions(limit=1))).items:
                await self._cluster.delete_collection(resource)
                if (await self._cluster.list(resource, options=ListOptions(limit=1))).items:
                    return False
        left = [f for f in definition["metadata"].get("finalizers") or () if f != CLEANUP]
        try:
            await self._cluster.patch(
                DEFINITIONS, definition["metadata"]["name"], MergePatch({"metadata": {"finalizers": left or None}})
            )
        except NotFound:
            pass
        return True
