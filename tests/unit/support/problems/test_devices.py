from typing import Any

import pytest

from devlet.kit.dice import Dice
from devlet.objects.values.quantity import Quantity
from tests.support.problems.devices import LISTS, attributes, counter_set, device
from tests.support.problems.generator import THEMES


def many(*themes: str, counter_sets: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    dice = Dice(3)
    return [device(dice, themes, index, counter_sets) for index in range(200)]


def keys(devices: list[dict[str, Any]]) -> set[str]:
    return {key for each in devices for key in each}


def test_a_device_without_themes_has_attributes_and_capacity_and_nothing_else() -> None:
    assert keys(many()) == {"name", "attributes", "capacity"}


@pytest.mark.parametrize(
    ("theme", "added"),
    [
        ("shared", {"allowMultipleAllocations"}),
        ("taints", {"taints"}),
        ("binding", {"bindingConditions", "bindingFailureConditions", "bindsToNode"}),
        ("lists", set()),
    ],
)
def test_a_theme_adds_its_fields(theme: str, added: set[str]) -> None:
    assert keys(many(theme)) - keys(many()) == added


def test_binding_conditions_come_with_failure_conditions_on_some_devices() -> None:
    found = many("binding")
    assert all(("bindingConditions" in each) == ("bindingFailureConditions" in each) for each in found)
    assert 0 < sum("bindingConditions" in each for each in found) < len(found)


def test_each_list_attribute_is_a_list_on_some_devices_and_one_value_on_others() -> None:
    dice = Dice(5)
    found = [attributes(dice, ["lists"], 0) for _ in range(200)]
    for name, (one, several, _) in LISTS.items():
        kinds = {key for each in found for key in each.get(name, ())}
        assert {one, several, "strings"} == kinds | {"strings"}, name


def test_an_attribute_has_exactly_one_value_unless_errors_are_wanted() -> None:
    everything_else = [theme for theme in THEMES if theme != "errors"]
    assert all(len(value) == 1 for each in many(*everything_else) for value in each["attributes"].values())
    assert any(not value for each in many("errors") for value in each["attributes"].values())


def test_a_policy_has_a_default_and_at_most_one_kind_of_bounds() -> None:
    capacities = [c for each in many("shared") for c in each.get("capacity", {}).values()]
    policies = [capacity["requestPolicy"] for capacity in capacities if "requestPolicy" in capacity]
    kinds = {frozenset(policy) for policy in policies}
    assert kinds == {frozenset(["default", *bounds]) for bounds in ([], ["validValues"], ["validRange"])}
    ranges = [policy["validRange"] for policy in policies if "validRange" in policy]
    assert {frozenset(each) for each in ranges} == {
        frozenset(["min", *more]) for more in ([], ["max"], ["step"], ["max", "step"])
    }
    assert all(Quantity.parse(each["step"]).sign > 0 for each in ranges if "step" in each)


def test_devices_consume_counters_of_the_sets_there_are() -> None:
    sets = {name: counter_set(Dice(1), name)["counters"] for name in ("set0", "set1")}
    found = [c for each in many("partition", counter_sets=tuple(sets)) for c in each.get("consumesCounters", ())]
    assert {each["counterSet"] for each in found} == set(sets)
    assert all(each["counters"].keys() <= sets[each["counterSet"]].keys() for each in found)
