import pytest

from devlet.objects.validation import amounts
from devlet.objects.validation.field_errors import invalid
from devlet.objects.values.quantity import Quantity


def test_a_quantity_is_read() -> None:
    assert amounts.parse("1Ki") == amounts.parse(1024) == Quantity.of(1024)


@pytest.mark.parametrize("text", ["", "x", "1Zi"])
def test_an_invalid_amount_is_a_cause_and_not_an_exception(text: str) -> None:
    assert amounts.parse(text) is None
    assert amounts.check_not_negative("p", text) == amounts.unreadable("p", text)


def test_a_negative_amount_is_refused() -> None:
    assert amounts.check_not_negative("p", "-1") == invalid("p", "-1", "must be greater than or equal to 0")
    assert amounts.check_not_negative("p", "0") is None
