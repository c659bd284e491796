"""The admission of one pod: which device plugins it waits for, and whether the node takes it."""

import logging

import anyio

from devlet.cluster.events import WARNING
from devlet.errors import Unavailable
from devlet.kit.facts import facts
from devlet.node.pods.api_object import PodObject
from devlet.node.pods.parts import Parts
from devlet.node.reports import Rejection
from devlet.objects.identifiers import ResourceName
from devlet.objects.types.container import ContainerStateWaiting

__all__ = ["AWAITS_PLUGIN", "PodAdmission"]

log = logging.getLogger(__name__)

AWAITS_PLUGIN = "WaitingForDevicePlugin"


class PodAdmission:
    """`rejection` is why the node does not take the pod, once that is known. `awaited` are the resources that the pod
    has been reported to wait for."""

    __slots__ = ("_object", "_parts", "_scope", "awaited", "is_admitted", "rejection")

    def __init__(self, subject: PodObject, parts: Parts) -> None:
        self._object = subject
        self._parts = parts
        self.is_admitted = False
        self.rejection: Rejection | None = None
        self.awaited: tuple[ResourceName, ...] = ()
        self._scope: anyio.CancelScope | None = None

    def missing(self) -> tuple[ResourceName, ...]:
        """Return the resources whose device plugins have not listed their devices yet.

        Those plugins were here before the restart and are expected back; the device manager says for how long. No
        scheduler has looked for a node that has what a static pod requests. Until it is admitted, such a pod also waits
        for plugins that were never here."""
        parts, pod = self._parts, self._object.pod
        unknown = parts.admission.unknown(pod) if self._object.is_static and not self.is_admitted else ()
        return tuple(dict.fromkeys((*parts.devices.pending_resources(pod), *unknown)))

    def wait_for(self, resources: tuple[ResourceName, ...]) -> ContainerStateWaiting:
        """Record that the pod waits for these resources. Return what its containers say meanwhile."""
        message = f"waiting for the device plugins of {', '.join(resources)}, which have not listed their devices yet"
        if resources != self.awaited:
            self.awaited = resources
            self._object.record(WARNING, AWAITS_PLUGIN, message)
            log.info("pod waits for device plugins", extra=facts(resourceName=",".join(resources)))
        return ContainerStateWaiting(reason=AWAITS_PLUGIN, message=message)

    def adopt(self, containers: int) -> None:
        """Count the pod as admitted: it was, before devlet was restarted."""
        self._parts.admission.adopt(self._object.pod)
        self.is_admitted = True
        log.info("pod taken over", extra=facts(containers=containers))

    async def admit(self) -> None:
        """Decide on the pod. Nothing is decided if this is cancelled, or fails with Unavailable."""
        self.awaited = ()
        try:
            with anyio.CancelScope() as self._scope:
                async with self._parts.limiter:
                    pod, is_static = self._object.pod, self._object.is_static
                    self.rejection = await self._parts.admission.admit(pod, static=is_static)
                self.is_admitted = self.rejection is None
        except Unavailable as e:
            self._object.record(WARNING, "FailedAdmission", f"not admitted yet: {e}")
            raise
        finally:
            self._scope = None
        if self.is_admitted:
            log.info("pod admitted")

    def cancel(self) -> None:
        """Do not wait any longer for a plugin to answer."""
        if self._scope is not None:
            self._scope.cancel()

    def reject(self) -> None:
        """Report why the pod is not admitted."""
        assert self.rejection is not None
        reason, message = self.rejection.reason, self.rejection.message
        log.info("pod rejected", extra=facts(reason=reason, message=message))
        self._object.record(WARNING, reason, message)
