"""Write the condition EvictionInProgress of DeviceTaintRules: at once for a changed rule, otherwise at most every ten
seconds.

As in Kubernetes, every change of the condition updates its lastTransitionTime. This shows every controller, including
one that takes over, when the condition was last written.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskStatus
from msgspec import to_builtins
from msgspec.structs import replace

from devlet.cluster.client import ApplyPatch, Cluster, WriteOptions
from devlet.cluster.informer import Changed
from devlet.control.informers import Informers
from devlet.control.taints.rule_status import Counts, condition_of, is_final, next_condition
from devlet.errors import InvalidInput, NotFound
from devlet.kit.backoff import Backoff
from devlet.kit.clock import Clock
from devlet.kit.work_queue import WorkQueue
from devlet.objects.kinds import DEVICE_TAINT_RULES
from devlet.objects.types.meta import Condition
from devlet.objects.types.taint_rule import DeviceTaintRule
from devlet.objects.values.timestamps import format_time, parse_time

__all__ = ["RuleReporter", "Settings"]

FIELD_MANAGER = "device-taint-eviction-controller"  # as in Kubernetes, so that either controller can take over


@dataclass(frozen=True, slots=True)
class Settings:
    every: float = 10.0  # seconds between two writes for one generation of a rule
    workers: int = 8
    retry: Backoff = field(default=Backoff(0.005, 60.0))


class RuleReporter:
    """`counts` returns the numbers of a rule when its condition is to be written."""

    def __init__(
        self,
        cluster: Cluster,
        informers: Informers,
        clock: Clock,
        counts: Callable[[DeviceTaintRule], Counts],
        settings: Settings = Settings(),
    ) -> None:
        self._cluster = cluster
        self._rules = informers.rules
        self._clock = clock
        self._counts = counts
        self._settings = settings
        self._queue = WorkQueue[str](self._write, clock, workers=settings.workers, backoff=settings.retry)
        self._rules.on_change(self._changed)

    @property
    def is_idle(self) -> bool:
        return self._queue.is_idle

    def later(self, rules: Iterable[str]) -> None:
        """Update the conditions of these rules in a while: more pods may be evicted until then."""
        for rule in rules:
            self._queue.add_after(rule, self._settings.every)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        for rule in self._rules.all():
            self._queue.add(rule.metadata.name)
        await self._queue.run(task_status=task_status)

    def _changed(self, change: Changed[DeviceTaintRule]) -> None:
        if change.new is None:
            self._queue.forget(change.key[1])
        elif change.old is None or _relevant(change.old) != _relevant(change.new):
            self._queue.add(change.key[1])

    async def _write(self, name: str) -> None:
        rule = self._rules.get(name)
        if rule is None or is_final(rule):
            return
        if (wait := self._wait(rule)) > 0:
            return self._queue.add_after(name, wait)
        condition = next_condition(rule, self._counts(rule))
        if condition != condition_of(rule):
            await self._apply(rule, replace(condition, last_transition_time=format_time(self._clock.now())))

    def _wait(self, rule: DeviceTaintRule) -> float:
        known = condition_of(rule)
        if known is None or known.observed_generation != rule.metadata.generation:
            return 0.0
        try:
            since = (self._clock.now() - parse_time(known.last_transition_time)).total_seconds()
        except InvalidInput:
            return 0.0
        return self._settings.every - since if since >= 0 else 0.0

    async def _apply(self, rule: DeviceTaintRule, condition: Condition) -> None:
        document = {
            "apiVersion": DEVICE_TAINT_RULES.api_version,
            "kind": "DeviceTaintRule",
            "metadata": {"name": rule.metadata.name, "uid": rule.metadata.uid},
            "status": {"conditions": [to_builtins(condition)]},
        }
        patch, options = ApplyPatch(document, force=True), WriteOptions(field_manager=FIELD_MANAGER)
        try:
            await self._cluster.patch(
                DEVICE_TAINT_RULES, rule.metadata.name, patch, subresource="status", options=options
            )
        except NotFound:
            pass


def _relevant(rule: DeviceTaintRule) -> object:
    """Return what matters of a rule here."""
    return rule.metadata.uid, rule.spec
