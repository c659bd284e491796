import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import toleration
from devlet.objects.validation.field_errors import invalid, not_supported, required, too_many

GOOD = {"key": "a.io/b", "operator": "Equal", "value": "v", "effect": "NoExecute"}


@pytest.mark.parametrize("item", [GOOD, {"operator": "Exists"}, {"operator": "Exists", "effect": "None"}])
def test_a_good_toleration_is_accepted(item: Document) -> None:
    assert list(toleration.check([item] * 16, "t")) == []


@pytest.mark.spec("AL-2.10")
@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"key": "a b"}, invalid("t[0].key", "a b", names.label_key("a b")[0])),
        ({"operator": ""}, required("t[0].operator")),
        ({"operator": "Like"}, not_supported("t[0].operator", "Like", ("Equal", "Exists"))),
        ({"operator": "Exists"}, invalid("t[0].value", "v", "must be empty for operator `Exists`")),
        ({"value": "a b"}, invalid("t[0].value", "a b", names.label_value("a b")[0])),
        ({"effect": "Other"}, not_supported("t[0].effect", "Other", ("NoExecute", "NoSchedule", "None"))),
    ],
)
def test_a_bad_toleration_is_refused(changes: Document, cause: Cause) -> None:
    assert list(toleration.check([{**GOOD, **changes}], "t")) == [cause]


@pytest.mark.spec("AL-2-gap.3")
def test_more_than_sixteen_tolerations_are_refused() -> None:
    assert list(toleration.check([GOOD] * 17, "t")) == [too_many("t", 17, 16)]
