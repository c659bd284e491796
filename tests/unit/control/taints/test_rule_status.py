"""What a rule's condition says."""

from typing import Any

import pytest

from devlet.control.taints.rule_status import Counts, is_final, next_condition
from devlet.objects.documents import Document, view
from devlet.objects.types.taint_rule import DeviceTaintRule

ONCE = "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."


def rule(effect: str = "NoExecute", generation: int = 1, **said: Any) -> DeviceTaintRule:
    document: Document = {"metadata": {"name": "r", "generation": generation}, "spec": {"taint": {"effect": effect}}}
    if said:
        document["status"] = {"conditions": [{"type": "EvictionInProgress", **said}]}
    return view(DeviceTaintRule, document)


def content(rule: DeviceTaintRule, counts: Counts = Counts()) -> tuple[str, str, str]:
    condition = next_condition(rule, counts)
    return condition.status, condition.reason, condition.message


@pytest.mark.spec("DA-7.5a")
@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (Counts(["a"]), ("True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace.")),
        (Counts(["a", "a"]), ("True", "PodsPendingEviction", "2 pods need to be evicted in 1 namespace.")),
        (
            Counts(["a", "b", "a"], evicted=1),
            (
                "True",
                "PodsPendingEviction",
                "3 pods need to be evicted in 2 different namespaces. 1 pod evicted since starting the controller.",
            ),
        ),
        (Counts(evicted=2), ("False", "Completed", "2 pods evicted since starting the controller.")),
        (Counts(), ("False", "NotStarted", "")),
    ],
)
def test_the_condition_shows_the_progress_of_an_eviction(counts: Counts, expected: tuple[str, str, str]) -> None:
    assert content(rule(), counts) == expected


@pytest.mark.spec("DA-7.5b")
@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (
            Counts(["a"], published=1, allocated=1),
            "1 published device selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace "
            f"if the effect was NoExecute. {ONCE}",
        ),
        (
            Counts(["a", "b"], published=3, allocated=2, evicted=4),
            "3 published devices selected. 2 allocated devices selected. 2 pods would be evicted in 2 different "
            f"namespaces if the effect was NoExecute. {ONCE} 4 pods evicted since starting the controller.",
        ),
        (
            Counts(),
            "0 published devices selected. 0 allocated devices selected. 0 pods would be evicted in 0 different "
            f"namespaces if the effect was NoExecute. {ONCE}",
        ),
    ],
)
def test_a_rule_without_effect_shows_what_it_would_do(counts: Counts, expected: str) -> None:
    assert content(rule("None"), counts) == ("False", "NoEffect", expected)


@pytest.mark.spec("DA-7.5c")
@pytest.mark.parametrize("effect", ["NoSchedule", "SomethingNew"])
def test_a_rule_with_another_effect_says_that_it_does_not_evict(effect: str) -> None:
    assert content(rule(effect)) == ("False", "OtherEffect", "Eviction only happens for the NoExecute effect.")


def test_a_rule_stays_completed_when_its_controller_is_replaced() -> None:
    assert content(rule(observedGeneration=1, status="True"))[1] == "Completed"
    assert content(rule(observedGeneration=1, status="False", reason="Completed"))[1] == "Completed"
    assert content(rule(observedGeneration=1, status="False", reason="NotStarted"))[1] == "NotStarted"
    assert content(rule(generation=2, observedGeneration=1, status="True"))[1] == "NotStarted"


def test_an_unchanged_condition_equals_the_existing_one() -> None:
    said: dict[str, Any] = {"status": "False", "reason": "NotStarted", "observedGeneration": 1}
    there = rule(lastTransitionTime="2025-01-01T00:00:00Z", **said)
    assert next_condition(there, Counts()) == there.status.conditions[0]
    changed = rule(generation=2, lastTransitionTime="2025-01-01T00:00:00Z", **said)
    assert next_condition(changed, Counts()).observed_generation == 2


@pytest.mark.spec("DA-7.5b")
def test_a_dry_run_is_final_for_its_generation() -> None:
    assert is_final(rule("None", observedGeneration=1, reason="NoEffect"))
    assert not is_final(rule("None", generation=2, observedGeneration=1, reason="NoEffect"))
    assert not is_final(rule("None"))
    assert not is_final(rule("NoExecute", observedGeneration=1))
