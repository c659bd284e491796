import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import conditions
from devlet.objects.validation.field_errors import duplicate, invalid, not_supported, required, too_long, too_many

GOOD: Document = {"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z", "reason": "Fine"}


def test_good_conditions_are_accepted() -> None:
    items = [GOOD, {**GOOD, "type": "a.io/Other", "status": "Unknown", "observedGeneration": 1, "message": "m"}]
    assert list(conditions.check(items, "c", 8)) == []


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"type": ""}, required("c[0].type")),
        ({"type": "a b"}, invalid("c[0].type", "a b", names.qualified_name("a b")[0])),
        ({"status": "Yes"}, not_supported("c[0].status", "Yes", ("False", "True", "Unknown"))),
        (
            {"observedGeneration": -1},
            invalid("c[0].observedGeneration", -1, "must be greater than or equal to zero"),
        ),
        ({"lastTransitionTime": None}, required("c[0].lastTransitionTime", "must be set")),
        ({"reason": ""}, required("c[0].reason", "must be set")),
        ({"reason": "R" * 1025}, too_long("c[0].reason", 1024)),
        ({"message": "m" * 32769}, too_long("c[0].message", 32768)),
    ],
)
def test_a_bad_condition_is_refused(changes: Document, cause: Cause) -> None:
    assert list(conditions.check([{**GOOD, **changes}], "c", 8)) == [cause]


def test_a_reason_is_one_word() -> None:
    (cause,) = conditions.check([{**GOOD, "reason": "two words"}], "c", 8)
    assert cause.message.startswith('Invalid value: "two words": a condition reason must start with')


def test_a_type_occurs_once() -> None:
    assert list(conditions.check([GOOD, GOOD], "c", 8)) == [duplicate("c[1].type", "Ready")]


def test_too_many_conditions_are_not_checked_individually() -> None:
    assert list(conditions.check([{}] * 9, "c", 8)) == [too_many("c", 9, 8)]


@pytest.mark.parametrize(
    ("binding", "failure", "cause"),
    [
        (
            ["a"],
            [],
            invalid(
                "d.bindingFailureConditions", None, "bindingFailureConditions are required to use bindingConditions"
            ),
        ),
        (
            [],
            ["a"],
            invalid("d.bindingConditions", None, "bindingConditions are required to use bindingFailureConditions"),
        ),
        (
            ["a"],
            ["b", "a"],
            invalid(
                "d.bindingFailureConditions[1]", "a", "bindingFailureConditions must not overlap with bindingConditions"
            ),
        ),
        (["a", "a"], ["b"], duplicate("d.bindingConditions[1]", "a")),
        (["a!"], ["b"], invalid("d.bindingConditions[0]", "a!", names.qualified_name("a!")[0])),
        (["a", "b", "c", "d", "e"], ["f"], too_many("d.bindingConditions", 5, 4)),
        (["f"], ["a", "b", "c", "d", "e"], too_many("d.bindingFailureConditions", 5, 4)),
    ],
)
def test_binding_conditions_come_in_two_disjoint_lists(binding: list[str], failure: list[str], cause: Cause) -> None:
    owner = {"bindingConditions": binding, "bindingFailureConditions": failure}
    assert list(conditions.check_binding(owner, "d")) == [cause]


def test_good_binding_conditions_are_accepted() -> None:
    owner = {"bindingConditions": ["a.io/Attached"], "bindingFailureConditions": ["Failed"]}
    assert list(conditions.check_binding(owner, "d")) == list(conditions.check_binding({}, "d")) == []
