import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import device_taint
from devlet.objects.validation.field_errors import invalid, not_supported, required

GOOD = {"key": "a.io/b", "value": "v", "effect": "NoSchedule"}


def test_a_good_taint_is_accepted() -> None:
    assert list(device_taint.check(GOOD, "t")) == []
    assert list(device_taint.check({"key": "k", "effect": "None"}, "t")) == []


@pytest.mark.spec("AL-2.24")
@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"key": "a b"}, invalid("t.key", "a b", names.label_key("a b")[0])),
        ({"value": "a b"}, invalid("t.value", "a b", names.label_value("a b")[0])),
        ({"effect": ""}, required("t.effect")),
        ({"effect": "Other"}, not_supported("t.effect", "Other", ("NoExecute", "NoSchedule", "None"))),
    ],
)
def test_a_bad_taint_is_refused(changes: Document, cause: Cause) -> None:
    assert list(device_taint.check({**GOOD, **changes}, "t")) == [cause]


def test_a_taint_needs_a_key() -> None:
    causes = list(device_taint.check({"effect": "None"}, "t"))
    assert causes[0] == invalid("t.key", "", "name part must be non-empty")
