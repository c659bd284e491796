"""The condition EvictionInProgress of a DeviceTaintRule, with the reasons and messages of Kubernetes. Pure.

A rule with the effect None is a dry run. Its result is written once for each generation of the rule.
"""

from collections.abc import Collection
from dataclasses import dataclass

from devlet.control.taints.device_taints import NO_EXECUTE
from devlet.objects.types.meta import Condition
from devlet.objects.types.taint_rule import DeviceTaintRule

__all__ = ["EVICTION_IN_PROGRESS", "NO_EFFECT", "Counts", "condition_of", "is_final", "next_condition"]

EVICTION_IN_PROGRESS = "EvictionInProgress"
NO_EFFECT = "None"
OTHER = "Eviction only happens for the NoExecute effect."
ONCE = "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of one rule.

    `namespaces` has the namespace of each pod that the rule evicts, or would evict if its effect is None. `published`
    and `allocated` devices are counted only for the effect None. `evicted` counts from the start of the controller."""

    namespaces: Collection[str] = ()
    published: int = 0
    allocated: int = 0
    evicted: int = 0


def condition_of(rule: DeviceTaintRule) -> Condition | None:
    return next((each for each in rule.status.conditions if each.type == EVICTION_IN_PROGRESS), None)


def is_final(rule: DeviceTaintRule) -> bool:
    """Return True if the condition of this generation of the rule will not change any more."""
    known = condition_of(rule)
    return rule.spec.taint.effect == NO_EFFECT and known is not None and _is_current(known, rule)


def next_condition(rule: DeviceTaintRule, counts: Counts) -> Condition:
    """Return the condition with the time of the existing one, so that both are equal if nothing has changed."""
    known = condition_of(rule)
    is_on, reason, message = _content(rule, counts, known)
    evicted = (
        f"{_number(counts.evicted, 'pod', 'pods')} evicted since starting the controller." if counts.evicted else ""
    )
    return Condition(
        type=EVICTION_IN_PROGRESS,
        status="True" if is_on else "False",
        reason=reason,
        message=" ".join(filter(None, (message, evicted))),
        observed_generation=rule.metadata.generation,
        last_transition_time=known.last_transition_time if known else None,
    )


def _content(rule: DeviceTaintRule, counts: Counts, known: Condition | None) -> tuple[bool, str, str]:
    """Return status, reason and message."""
    match rule.spec.taint.effect:
        case "NoExecute" if counts.namespaces:
            need = _number(len(counts.namespaces), "pod needs", "pods need")
            return True, "PodsPendingEviction", f"{need} to be evicted in {_namespaces(counts)}."
        case "NoExecute":
            return False, "Completed" if counts.evicted or _has_begun(rule, known) else "NotStarted", ""
        case "None":
            return False, "NoEffect", _dry_run(counts)
        case _:
            return False, "OtherEffect", OTHER


def _has_begun(rule: DeviceTaintRule, known: Condition | None) -> bool:
    """Return True if the existing condition shows that evictions began, maybe before this controller started."""
    return known is not None and _is_current(known, rule) and (known.status == "True" or known.reason == "Completed")


def _is_current(known: Condition, rule: DeviceTaintRule) -> bool:
    return known.observed_generation == rule.metadata.generation


def _dry_run(counts: Counts) -> str:
    return (
        f"{_number(counts.published, 'published device', 'published devices')} selected. "
        f"{_number(counts.allocated, 'allocated device', 'allocated devices')} selected. "
        f"{_number(len(counts.namespaces), 'pod', 'pods')} would be evicted in {_namespaces(counts)} "
        f"if the effect was {NO_EXECUTE}. {ONCE}"
    )


def _namespaces(counts: Counts) -> str:
    return _number(len(set(counts.namespaces)), "namespace", "different namespaces")


def _number(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
