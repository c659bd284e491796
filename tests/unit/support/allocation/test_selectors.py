import pytest

from devlet.errors import InvalidSelector
from tests.support.allocation.selectors import selector_matches

DEVICE = {"name": "d1", "attributes": {"x": {"ints": [1, 2]}}, "capacity": {"memory": {"value": "8Gi"}}}
LARGE = 'device.capacity["drv"].memory.isGreaterThan(quantity("4Gi"))'


def test_an_expression_selects_a_device_of_a_driver() -> None:
    matches = selector_matches({})
    assert matches(LARGE, DEVICE, "drv") is True
    assert matches('device.driver == "other"', DEVICE, "drv") is False


@pytest.mark.parametrize("expression", ['device.attributes["drv"].nosuch == 1', "gizmo", '"text"'])
def test_an_expression_that_cannot_be_evaluated_raises(expression: str) -> None:
    with pytest.raises(InvalidSelector):
        selector_matches({})(expression, DEVICE, "drv")


def test_lists_are_an_error_while_their_feature_is_off() -> None:
    with pytest.raises(InvalidSelector, match="unsupported attribute value"):
        selector_matches({"features": {"ListTypeAttributes": False}})(LARGE, DEVICE, "drv")
