import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import pod_toleration
from devlet.objects.validation.field_errors import invalid, not_supported

ALL_KEYS = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'


@pytest.mark.parametrize(
    "toleration",
    [
        {"operator": "Exists"},
        {"key": "a.io/b", "value": "c"},
        {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
    ],
)
def test_a_good_toleration_is_accepted(toleration: Document) -> None:
    assert list(pod_toleration.check([toleration], "t")) == []


@pytest.mark.parametrize(
    ("toleration", "cause"),
    [
        ({"operator": "Equal"}, invalid("t[0].operator", "Equal", ALL_KEYS)),
        ({"key": "a b"}, invalid("t[0].key", "a b", names.label_key("a b")[0])),
        ({"key": "a", "value": "b c"}, invalid("t[0].operator", "b c", names.label_value("b c")[0])),
        (
            {"key": "a", "operator": "Exists", "value": "b"},
            invalid(
                "t[0].operator",
                {"key": "a", "operator": "Exists", "value": "b"},
                "value must be empty when `operator` is 'Exists'",
            ),
        ),
        (
            {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1},
            invalid("t[0].effect", "NoSchedule", "effect must be 'NoExecute' when `tolerationSeconds` is set"),
        ),
        (
            {"key": "a", "effect": "Some"},
            not_supported("t[0].effect", "Some", ("NoSchedule", "PreferNoSchedule", "NoExecute")),
        ),
    ],
)
def test_a_bad_toleration_is_refused(toleration: Document, cause: Cause) -> None:
    assert list(pod_toleration.check([toleration], "t")) == [cause]
