import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import counters
from devlet.objects.validation.field_errors import duplicate, invalid, required, too_many

GOOD: Document = {"memory": {"value": "1Gi"}}


def sets(count: int) -> list[Document]:
    return [{"name": f"set-{i}", "counters": GOOD} for i in range(count)]


@pytest.mark.spec("AL-2.26")
@pytest.mark.parametrize(
    ("items", "cause"),
    [
        (sets(9), too_many("s", 9, 8)),
        (sets(1) * 2, duplicate("s[1]", "set-0")),
        ([{"counters": GOOD}], required("s[0].name")),
        ([{"name": "A", "counters": GOOD}], invalid("s[0].name", "A", names.dns_label("A")[0])),
        ([{"name": "a"}], required("s[0].counters")),
        ([{"name": "a", "counters": {f"c{i}": {} for i in range(33)}}], too_many("s[0].counters", 33, 32)),
        ([{"name": "a", "counters": {"A": {}}}], invalid("s[0].counters", "A", names.dns_label("A")[0])),
    ],
)
def test_bad_shared_counters_are_refused(items: list[Document], cause: Cause) -> None:
    assert list(counters.check_shared(items, "s")) == [cause]


@pytest.mark.spec("AL-2.26")
def test_eight_sets_of_32_counters_are_accepted() -> None:
    full = {f"c{i}": {"value": "1"} for i in range(32)}
    assert list(counters.check_shared([{**item, "counters": full} for item in sets(8)], "s")) == []


def test_a_device_takes_from_two_sets() -> None:
    taken = [{"counterSet": f"set-{i}", "counters": GOOD} for i in range(3)]
    assert list(counters.check_consumed(taken[:2], "c")) == []
    assert list(counters.check_consumed(taken, "c")) == [too_many("c", 3, 2)]
    assert list(counters.check_consumed(taken[:1] * 2, "c")) == [duplicate("c[1]", "set-0")]
    assert list(counters.check_consumed([{"counters": GOOD}], "c")) == [required("c[0].counterSet")]


def test_a_counter_with_an_invalid_quantity_is_a_cause() -> None:
    (cause,) = counters.check_shared([{"name": "a", "counters": {"b": {"value": "x"}}}], "s")
    assert cause.field == "s[0].counters[b].value"
