"""The containers of one pod: what to do next for them, and starting them with their devices."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from msgspec.structs import replace

from devlet.cluster.events import NORMAL, WARNING
from devlet.errors import DevletError, NotCreated
from devlet.node.devices.container_options import ContainerOptions
from devlet.node.pods import container_plan
from devlet.node.pods.api_object import PodObject
from devlet.node.pods.container_plan import CRASHING, History, Plan, Runs, Start
from devlet.node.pods.parts import Parts
from devlet.objects.identifiers import ContainerName
from devlet.objects.types.container import ContainerStateWaiting
from devlet.runtime.containers import Config, Run

__all__ = ["PodContainers", "config"]

NOT_STARTED = "CreateContainerConfigError"
NOT_CREATED = "CreateContainerError"
_SOON = timedelta(seconds=1)  # not to be tried again for every change, where there are many


class PodContainers:
    """`previous` are the runs before those that the runtime reports, as far as this object started their successors."""

    __slots__ = ("_histories", "_object", "_parts", "_reported", "_requested", "previous")

    def __init__(self, subject: PodObject, parts: Parts) -> None:
        self._object = subject
        self._parts = parts
        self._histories: dict[ContainerName, History] = {}
        self._requested: dict[ContainerName, tuple[int, float]] = {}  # the number of the run, and when it was requested
        self._reported: Mapping[ContainerName, ContainerStateWaiting] = {}  # crashes
        self.previous: dict[ContainerName, Run] = {}

    def plan(self, runs: Runs) -> Plan:
        """Return what to do next, given the newest run of each container.

        A run that was requested a moment ago is not requested again if the runtime does not show it yet."""
        parts = self._parts
        plan = container_plan.plan(self._object.pod, runs, self._histories, parts.clock.now(), parts.settings.restarts)
        due = tuple(each for each in plan.start if not self._is_starting(each))
        if len(due) == len(plan.start):
            return plan
        again = parts.clock.now() + timedelta(seconds=parts.settings.look_again)
        return replace(plan, start=due, wake=min(again, plan.wake or again))

    async def start(self, plan: Plan, runs: Runs) -> None:
        """Try to start the containers that are due. A failure is remembered, and the next plan says when to retry."""
        async with self._parts.limiter:
            for each in plan.start:
                await self._start(each, runs.get(each.container.name))

    def retry(self) -> bool:
        """Let containers that could not be started be tried again now. Return True if there are any."""
        now = self._parts.clock.now()
        due = {name: each for name, each in self._histories.items() if each.failed_at and now - each.failed_at >= _SOON}
        for name, history in due.items():
            self._histories[name] = container_plan.to_be_tried(history)
        return bool(due)

    def report_crashes(self, plan: Plan) -> None:
        """Record an event for each container that waits to be restarted, once per wait."""
        crashing = {name: why for name, why in plan.waiting.items() if why.reason == CRASHING}
        for name in crashing:
            if self._reported.get(name) != crashing[name]:
                metadata = self._object.pod.metadata
                subject = f"{name} in pod {metadata.name}_{metadata.namespace}({metadata.uid})"
                self._object.record(WARNING, "BackOff", f"Back-off restarting failed container {subject}", name)
        self._reported = crashing

    def _is_starting(self, start: Start) -> bool:
        number, at = self._requested.get(start.container.name, (-1, 0.0))
        return number == start.number and self._parts.clock.monotonic() - at < self._parts.settings.look_again

    async def _start(self, start: Start, before: Run | None) -> None:
        parts, pod, container = self._parts, self._object.pod, start.container
        history = self._histories.get(container.name, History())
        try:
            claimed = parts.claims.cdi_devices(pod, container)
            options = await parts.devices.start(pod, container)
            await parts.runtime.start(pod, container, start.number, config(options, claimed))
        except DevletError as e:
            reason = NOT_CREATED if isinstance(e, NotCreated) else NOT_STARTED
            problem = ContainerStateWaiting(reason=reason, message=str(e))
            self._histories[container.name] = container_plan.failed(history, problem, parts.clock.now())
            self._object.record(WARNING, "Failed", f"Error: {e}", container.name)
            return
        for conflict in options.conflicts if options else ():
            self._object.record(WARNING, "DeviceOptionsConflict", conflict, container.name)
        self._requested[container.name] = start.number, parts.clock.monotonic()
        self._histories[container.name] = container_plan.started(before, history, parts.settings.restarts)
        if before is not None:
            self.previous[container.name] = before
        self._object.record(NORMAL, "Started", f"Started container {container.name}", container.name)


def config(options: ContainerOptions | None, claimed: Sequence[str] = ()) -> Config | None:
    """Return what the runtime must add to a container, or None if there is nothing to add.

    `options` come from device plugins. `claimed` are the CDI devices of the container's claims, which come first."""
    if options is None:
        return Config(cdi_devices=tuple(dict.fromkeys(claimed))) if claimed else None
    devices = tuple(dict.fromkeys((*claimed, *options.cdi_devices)))
    return Config(options.env, options.mounts, options.devices, options.annotations, devices)
