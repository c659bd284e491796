"""Changes of the cluster's objects become changes of the scheduler's state, and retries of the pods that they may help.

Listeners run at once, in the order of the changes, and must not wait. They decide what is worth another attempt; the
attempts themselves are made by the scheduler.
"""

import logging
from functools import partial

from devlet.cluster.informer import Changed
from devlet.control.informers import BY_CLAIM, BY_NODE, Informers
from devlet.control.scheduler import claim_checks, fit, relevance
from devlet.control.scheduler.cluster_state import ClusterState
from devlet.control.scheduler.decision import Refusal
from devlet.control.scheduler.fit import PodNeeds
from devlet.control.scheduler.pending import PendingPods
from devlet.control.scheduler.queue import Wake
from devlet.control.scheduler.settings import Settings
from devlet.errors import InvalidInput
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.objects.identifiers import NodeName, ObjectKey, PodUID
from devlet.objects.node_drivers import gone_drivers
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.core import Namespace
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod
from devlet.objects.types.slice import ResourceSlice
from devlet.objects.types.taint_rule import DeviceTaintSelector

__all__ = ["Watcher"]

log = logging.getLogger(__name__)


class Watcher:
    """Keeps `state` and the pending pods up to date from the moment it is created."""

    def __init__(self, informers: Informers, clock: Clock, settings: Settings, pending: PendingPods) -> None:
        self._informers = informers
        self._pending = pending
        self._queue = pending.queue
        informers.nodes.on_change(self._node_changed)
        informers.namespaces.on_change(self._namespace_changed)
        informers.classes.on_change(self._class_changed)
        self.state = ClusterState(
            informers,
            clock,
            settings,
            devices_freed=partial(self._queue.changed, Wake.DEVICES),
            claim_landed=self._wake_users,
            slice_changed=self._slice_changed,
            slice_removed=self._slice_removed,
            taints_changed=self._taints_changed,
        )
        informers.claims.on_change(self._claim_changed)
        informers.pods.on_change(self._pod_changed)

    # Pods

    def _pod_changed(self, change: Changed[Pod]) -> None:
        old, new = change.old, change.new
        if old is not None and (new is None or new.uid != old.uid):
            self._removed(old.uid)
            old = None
        if new is None:
            return
        self._count(old, new)
        if (binding := self._pending.binding(new.uid)) is not None:
            binding.pod, binding.is_gone = new, False
        elif not self.state.needs_scheduling(new) or self._was_bound(new):
            self._pending.forget(new.uid)
        elif (record := self._pending.get(new.uid)) is None:
            self._add(new)
        else:
            record.pod = new
            if old is None or relevance.is_relevant(old, new):
                self._queue.put(new.uid, new.spec.priority or 0)

    def _add(self, pod: Pod) -> None:
        """Queue a new pod. If its claims are not there yet, as is usual with templates, wait for them first."""
        record = self._pending.add(pod)
        if isinstance(claims := claim_checks.resolve(pod, self.state.claims.get), str):
            self._queue.park(pod.uid, pod.spec.priority or 0)
            self._pending.refuse(record, Refusal(Wake.ITSELF, claims, transient=True))
        else:
            self._queue.put(pod.uid, pod.spec.priority or 0)

    def _removed(self, uid: PodUID) -> None:
        self._pending.forget(uid)
        if self.state.nodes.leave(uid):
            self._queue.changed(Wake.CAPACITY)

    def _count(self, old: Pod | None, new: Pod) -> None:
        """Count what a pod uses of its node. One that we are binding was counted when that was decided."""
        nodes = self.state.nodes
        if new.is_finished:
            if nodes.leave(new.uid):
                self._queue.changed(Wake.CAPACITY)
        elif new.spec.node_name and nodes.where(new.uid) != new.spec.node_name:
            if needs := _needs(new):
                nodes.occupy(new.uid, NodeName(new.spec.node_name), needs)
                self._pending.pods_changed()
        elif new.spec.node_name and old and old.metadata.labels != new.metadata.labels and (needs := _needs(new)):
            nodes.relabel(new.uid, needs)
            self._pending.pods_changed()
            self._queue.changed(Wake.CAPACITY)

    def _was_bound(self, pod: Pod) -> bool:
        """Return True if we have bound the pod, and the informer does not know it yet."""
        return not pod.spec.node_name and self.state.nodes.where(pod.uid) is not None

    def _check_placed(self, pod: Pod) -> None:
        """Queue a pod that has a node if its claims need devices."""
        if pod.spec.node_name and pod.uid not in self._queue and self._pending.binding(pod.uid) is None:
            if self.state.needs_scheduling(pod):
                self._pending.add(pod)
                self._queue.put(pod.uid, pod.spec.priority or 0)

    # Claims

    def _claim_changed(self, change: Changed[ResourceClaim]) -> None:
        if relevance.may_help_pods(change):
            self._wake_users(change.key)
        if relevance.was_deallocated(change) or relevance.has_fewer_consumers(change):
            for pod in self._users(change.key):
                self._check_placed(pod)

    def _wake_users(self, claim: ObjectKey) -> None:
        for pod in self._users(claim):
            self._pending.wake(pod.uid)

    def _users(self, claim: ObjectKey) -> list[Pod]:
        return self._informers.pods.by_index(BY_CLAIM, "/".join(claim))

    # Nodes and namespaces

    def _node_changed(self, change: Changed[Node]) -> None:
        self.state.devices.when_idle(partial(self._update_node, change))
        if gone_drivers(change.new) - gone_drivers(change.old):  # their slices may have gone before
            self._check_placed_on(change.key[1])

    def _update_node(self, change: Changed[Node]) -> None:
        name = NodeName(change.key[1])
        if change.new is None:
            self.state.nodes.remove(name)
            return self._pending.capacity_taken()
        try:
            changed = self.state.nodes.put(change.new)
        except InvalidInput as e:
            self.state.nodes.remove(name)
            log.warning("node ignored", extra=facts(node=name, err=e))
            return
        if changed:
            self._queue.changed(Wake.NODES)

    def _check_placed_on(self, node: str) -> None:
        for pod in self._informers.pods.by_index(BY_NODE, node):
            self._check_placed(pod)

    def _namespace_changed(self, change: Changed[Namespace]) -> None:
        """Affinity terms may select other pods if the labels of a namespace change."""
        old, new = change.old, change.new
        if old is not None and new is not None and old.metadata.labels != new.metadata.labels:
            self._pending.pods_changed()
            self._queue.changed(Wake.CAPACITY)

    # Devices

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        self.state.devices.see_slice(old, new)
        self._queue.changed(Wake.DEVICES)

    def _slice_removed(self, slice_: ResourceSlice) -> None:
        if slice_.spec.node_name:
            self._check_placed_on(slice_.spec.node_name)

    def _taints_changed(self, _: DeviceTaintSelector) -> None:
        self._queue.changed(Wake.DEVICES)

    def _class_changed(self, change: Changed[DeviceClass]) -> None:
        self.state.classes_changed()
        self.state.devices.see_class(change.old, change.new)
        self._queue.changed(Wake.DEVICES)


def _needs(pod: Pod) -> PodNeeds | None:
    """Read what a placed pod uses; None if that cannot be read."""
    try:
        return fit.needs_of(pod)
    except InvalidInput as e:
        log.warning("pod not counted", extra=facts(pod=f"{pod.metadata.namespace}/{pod.name}", err=e))
        return None
