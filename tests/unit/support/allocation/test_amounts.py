import pytest

from tests.support.allocation.amounts import amount, amounts, unknown_names

RANGE = {"default": "2", "validRange": {"min": "2", "step": "2", "max": "6"}}
VALUES = {"default": "1", "validValues": ["1", "3"]}


@pytest.mark.parametrize(
    ("policy", "asked", "consumed"),
    [
        (None, None, "8"),
        (None, "3", "3"),
        (RANGE, None, "2"),
        (RANGE, "1", "2"),
        (RANGE, "3", "4"),
        (RANGE, "4", "4"),
        (RANGE, "7", None),
        (VALUES, None, "1"),
        (VALUES, "2", "3"),
        (VALUES, "4", None),
        ({"validRange": {"min": "1"}}, "1500m", "1500m"),
        ({"default": "5", "validRange": {"min": "1", "max": "4"}}, None, "5"),
        ({"validRange": {"min": "1", "step": "0"}}, "2", None),
    ],
)
def test_an_amount_is_rounded_and_then_checked(policy: object, asked: str | None, consumed: str | None) -> None:
    found = amount({"value": "8"} | ({"requestPolicy": policy} if policy else {}), asked)
    assert (None if found is None else str(found)) == consumed


def test_steps_are_printed_in_binary() -> None:
    policy = {"validRange": {"min": "1Gi", "step": "1Gi"}}
    assert str(amount({"value": "8Gi", "requestPolicy": policy}, "1500Mi")) == "2Gi"


def test_names_are_literal_unless_normalised() -> None:
    capacity, asked = {"memory": {"value": "8"}}, {"drv/memory": "1"}
    assert unknown_names(capacity, asked, "drv", normalise=False) == ["drv/memory"]
    assert unknown_names(capacity, asked, "drv", normalise=True) == []
    assert unknown_names(capacity, asked, "other", normalise=True) == ["drv/memory"]
    assert [str(each) for each in amounts(capacity, asked, "drv", normalise=True).values()] == ["1"]
