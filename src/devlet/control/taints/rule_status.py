"""What a DeviceTaintRule's condition EvictionInProgress says. Reasons and messages are those of the reference.

The dry run of a rule without effect is made once for each generation of the rule, and says so itself.
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
    """`namespaces` is where the pods are that the rule evicts, one entry per pod; for a rule without effect, those
    that it would evict, and then the devices count too. `evicted` is since the start of the controller."""

    namespaces: Collection[str] = ()
    published: int = 0
    allocated: int = 0
    evicted: int = 0


def condition_of(rule: DeviceTaintRule) -> Condition | None:
    return next((each for each in rule.status.conditions if each.type == EVICTION_IN_PROGRESS), None)


def is_final(rule: DeviceTaintRule) -> bool:
    """Whether nothing more will be said about this generation of the rule."""
    said = condition_of(rule)
    return rule.spec.taint.effect == NO_EFFECT and said is not None and _is_current(said, rule)


def next_condition(rule: DeviceTaintRule, counts: Counts) -> Condition:
    """With the time of the condition that is there, so that it equals that one if there is nothing new."""
    said = condition_of(rule)
    is_on, reason, message = _told(rule, counts, said)
    evicted = (
        f"{_number(counts.evicted, 'pod', 'pods')} evicted since starting the controller." if counts.evicted else ""
    )
    return Condition(
        type=EVICTION_IN_PROGRESS,
        status="True" if is_on else "False",
        reason=reason,
        message=" ".join(filter(None, (message, evicted))),
        observed_generation=rule.metadata.generation,
        last_transition_time=said.last_transition_time if said else None,
    )


def _told(rule: DeviceTaintRule, counts: Counts, said: Condition | None) -> tuple[bool, str, str]:
    """Status, reason and message."""
    match rule.spec.taint.effect:
        case "NoExecute" if counts.namespaces:
            need = _number(len(counts.namespaces), "pod needs", "pods need")
            return True, "PodsPendingEviction", f"{need} to be evicted in {_namespaces(counts)}."
        case "NoExecute":
            return False, "Completed" if counts.evicted or _has_begun(rule, said) else "NotStarted", ""
        case "None":
            return False, "NoEffect", _dry_run(counts)
        case _:
            return False, "OtherEffect", OTHER


def _has_begun(rule: DeviceTaintRule, said: Condition | None) -> bool:
    """Before this controller was started."""
    return said is not None and _is_current(said, rule) and (said.status == "True" or said.reason == "Completed")


def _is_current(said: Condition, rule: DeviceTaintRule) -> bool:
    return said.observed_generation == rule.metadata.generation


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
