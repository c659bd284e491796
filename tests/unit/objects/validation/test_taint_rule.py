import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import taint_rule
from devlet.objects.validation.field_errors import invalid, not_supported, required, too_many

TAINT = {"key": "a.io/b", "effect": "NoExecute"}


def check(spec: Document, old: Document | None = None) -> list[Cause]:
    return list(taint_rule.check({"spec": spec}, None if old is None else {"spec": old}))


@pytest.mark.parametrize("selector", [None, {}, {"driver": "d.io", "pool": "p/q", "device": "x"}])
def test_every_part_of_the_selector_is_optional(selector: Document | None) -> None:
    assert check({"taint": TAINT, "deviceSelector": selector}) == []


@pytest.mark.parametrize(
    ("selector", "cause"),
    [
        ({"driver": "a_b"}, invalid("spec.deviceSelector.driver", "a_b", names.dns_subdomain("a_b")[0])),
        ({"pool": "A"}, invalid("spec.deviceSelector.pool", "A", names.dns_subdomain("A")[0])),
        ({"device": "A"}, invalid("spec.deviceSelector.device", "A", names.dns_label("A")[0])),
    ],
)
def test_what_is_selected_has_a_valid_name(selector: Document, cause: Cause) -> None:
    assert check({"taint": TAINT, "deviceSelector": selector}) == [cause]


def test_the_taint_is_checked() -> None:
    assert check({"taint": {"key": "k"}}) == [required("spec.taint.effect")]
    expected = not_supported("spec.taint.effect", "Other", ("NoExecute", "NoSchedule", "None"))
    assert check({"taint": {"key": "k", "effect": "Other"}}) == [expected]


def test_an_unchanged_taint_is_not_checked_again() -> None:
    assert check({"taint": {"key": "k"}}, {"taint": {"key": "k"}}) == []


def test_the_status_has_at_most_eight_conditions() -> None:
    assert list(taint_rule.check_status({"status": {}})) == []
    causes = list(taint_rule.check_status({"status": {"conditions": [{}] * 9}}))
    assert causes == [too_many("status.conditions", 9, 8)]
