import pytest

from devlet.alloc.device_cel import DeviceInput, device_environment
from devlet.cel.program import COST_LIMIT, Interrupted, compile
from devlet.cel.types import BOOL
from devlet.cel.values import CelError, CostExceeded
from devlet.errors import InvalidSelector
from devlet.objects.documents import view
from devlet.objects.types.slice import Device

ENVIRONMENT = device_environment()
EXPENSIVE = "lists.range(1000).all(a, lists.range(1000).all(b, a >= 0))"


def device(**attributes: object) -> DeviceInput:
    return DeviceInput("d", view(Device, {"name": "d1", "attributes": attributes}))


def test_what_does_not_compile_says_why_and_where() -> None:
    with pytest.raises(InvalidSelector, match=r"compilation failed: ERROR: <input>:1:1: undeclared reference to 'nix'"):
        compile("nix", ENVIRONMENT)
    with pytest.raises(InvalidSelector, match="program instantiation failed: type conversion error"):
        compile('int("x") == 3', ENVIRONMENT)


def test_a_result_must_be_among_those_that_are_wanted() -> None:
    with pytest.raises(InvalidSelector, match="must evaluate to bool or the unknown type, not string"):
        compile("device.driver", ENVIRONMENT, [BOOL])


def test_many_values_are_matched_at_once_each_with_its_own_error() -> None:
    program = compile('device.attributes["d"].x == 1', ENVIRONMENT)
    found = program.matches([device(x={"int": 1}), device(), device(x={"int": 2})])
    assert found[0] is True and found[2] is False
    assert isinstance(found[1], CelError) and str(found[1]) == "no such key: x"


def test_a_non_bool_result_is_an_error_even_if_python_would_accept_it() -> None:
    (found,) = compile('device.attributes["d"].x', ENVIRONMENT).matches([device(x={"int": 1})])
    assert isinstance(found, CelError)
    assert str(found).startswith("CEL result of type int could not be converted to bool")


def test_code_is_generated_for_what_is_cheap_and_the_rest_is_counted() -> None:
    assert compile("device.driver == 'd'", ENVIRONMENT).is_generated
    program = compile(EXPENSIVE, ENVIRONMENT)
    assert not program.is_generated and program.cost.max > COST_LIMIT
    (found,) = program.matches([device()])
    assert isinstance(found, CostExceeded)


def test_giving_up_raises_interrupted() -> None:
    with pytest.raises(Interrupted):
        compile(EXPENSIVE, ENVIRONMENT).matches([device()], lambda: True)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("dyn(optional.of(true))", True),
        ("dyn(optional.of(optional.of(false)))", False),
        ("dyn(optional.none())", "of type optional_type could not be converted to bool: optional.none() dereference"),
        ("dyn(optional.of(1))", "of type optional_type could not be converted to bool: unsupported type conversion"),
        ("dyn(1.5)", "of type double could not be converted to bool: type conversion error from Double to 'bool'"),
        ('dyn(quantity("1"))', "could not be converted to bool: type conversion error from 'Quantity' to 'bool'"),
        ("dyn(null)", "could not be converted to bool: type conversion error from 'null_type' to 'bool'"),
        ("dyn(int)", "could not be converted to bool: type conversion not supported for 'type'"),
    ],
)
def test_a_result_is_converted_as_the_reference_does(expression: str, expected: bool | str) -> None:
    (found,) = compile(expression, ENVIRONMENT).matches([device()])
    assert found is expected if isinstance(expected, bool) else expected in str(found)


def test_patterns_that_are_made_at_run_time_are_counted_and_have_a_budget() -> None:
    cheap = compile('device.driver.matches("^" + device.driver)', ENVIRONMENT)
    assert not cheap.is_generated
    assert cheap.matches([device()]) == [True]
    assert compile('device.driver.matches("^d")', ENVIRONMENT).is_generated
    many = r'lists.range(500).all(i, !device.driver.matches("\\pL{20}" + string(i)))'
    (found,) = compile(many, ENVIRONMENT).matches([device()])
    assert isinstance(found, CostExceeded)
