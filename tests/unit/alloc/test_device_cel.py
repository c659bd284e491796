import pytest

from devlet.alloc.device_cel import DeviceInput, device_environment
from devlet.alloc.selectors import compile_selector
from devlet.cel.values import CelError
from devlet.errors import InvalidSelector
from devlet.objects.documents import Document, view
from devlet.objects.types.slice import Device

DRIVER = "a.example.com"


def input_of(device: Document) -> DeviceInput:
    return DeviceInput(DRIVER, view(Device, {"name": "d1", **device}))


def result(expression: str, device: Document) -> bool | CelError:
    return compile_selector(expression, device_environment()).matches([input_of(device)])[0]


GPU = {
    "attributes": {
        "model": {"string": "l4"},
        "numa": {"int": 1},
        "healthy": {"bool": True},
        "version": {"version": "1.2.3"},
        "other.example.com/model": {"string": "x"},
    },
    "capacity": {"memory": {"value": "8Gi"}},
}


@pytest.mark.parametrize(
    "expression",
    [
        f'device.driver == "{DRIVER}"',
        f'device.attributes["{DRIVER}"].model == "l4"',
        'device.attributes["other.example.com"].model == "x"',
        f'device.attributes["{DRIVER}"].numa == 1',
        f'device.attributes["{DRIVER}"].healthy',
        f'device.attributes["{DRIVER}"].version.isGreaterThan(semver("1.0.0"))',
        f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("4Gi"))',
        "!device.allowMultipleAllocations",
        "device.attributes.size() == 2",
    ],
)
def test_a_device_has_driver_attributes_and_capacity(expression: str) -> None:
    assert result(expression, GPU) is True


def test_an_unknown_domain_is_empty_and_an_unknown_name_an_error() -> None:
    assert result('device.attributes["nobody"].size() == 0', GPU) is True
    assert result('"nobody" in device.attributes', GPU) is False
    assert str(result(f'device.attributes["{DRIVER}"].lost == 1', GPU)) == "no such key: lost"


@pytest.mark.spec("DA-11.23")
@pytest.mark.parametrize("order", [("x", f"{DRIVER}/x"), (f"{DRIVER}/x", "x")])
def test_of_two_spellings_the_one_with_the_domain_counts(order: tuple[str, str]) -> None:
    values = {"x": {"int": 1}, f"{DRIVER}/x": {"int": 2}}
    attributes = {name: values[name] for name in order}
    assert result(f'device.attributes["{DRIVER}"].x == 2', {"attributes": attributes}) is True


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        ({}, "attribute x: unsupported attribute value"),
        ({"version": "one"}, "attribute x: parse semantic version: "),
        ({"versions": ["1.0.0", "one"]}, "attribute x: parse semantic version: "),
    ],
)
def test_what_cannot_be_shown_to_an_expression_is_a_problem_of_the_device(attribute: Document, text: str) -> None:
    shown = input_of({"attributes": {"x": attribute}})
    assert str(shown.problem_with(lists=True)).startswith(text)


def test_lists_are_a_problem_where_their_gate_is_off() -> None:
    shown = input_of({"attributes": {"x": {"ints": [1, 2]}}})
    assert shown.problem_with(lists=True) is None
    assert str(shown.problem_with(lists=False)) == "attribute x: unsupported attribute value"


@pytest.mark.parametrize(
    "attribute", [{"ints": [1, 2]}, {"strings": ["a"]}, {"bools": [True]}, {"versions": ["1.0.0"]}]
)
def test_lists_can_be_looked_into(attribute: Document) -> None:
    assert result(f'device.attributes["{DRIVER}"].x.size() > 0', {"attributes": {"x": attribute}}) is True


def test_gates_decide_what_a_new_expression_may_say() -> None:
    expression = "device.allowMultipleAllocations"
    compile_selector(expression, device_environment(stored=False))
    compile_selector(expression, device_environment(stored=True, shares=False))
    with pytest.raises(InvalidSelector, match="undefined field 'allowMultipleAllocations'"):
        compile_selector(expression, device_environment(stored=False, shares=False))
