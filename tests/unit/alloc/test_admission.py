import pytest

from devlet.alloc.admission import check_selector, selector_work
from devlet.errors import Cause


def test_a_selector_that_compiles_and_is_cheap_is_accepted() -> None:
    assert check_selector('device.driver == "gpu.example.com"', False) == ()


@pytest.mark.spec("DA-4.4f")
def test_a_selector_that_does_not_compile_is_refused_with_its_text_and_place() -> None:
    (cause,) = check_selector("device.driver =", False)
    assert cause.reason == "FieldValueInvalid"
    assert 'Invalid value: "device.driver ="' in cause.message
    assert "compilation failed: ERROR: <input>:1:15: Syntax error: token recognition error at: '='" in cause.message


def test_a_selector_must_return_a_bool() -> None:
    (cause,) = check_selector("device.driver", False)
    assert cause.message.endswith("must evaluate to bool or the unknown type, not string")


@pytest.mark.spec("DA-4.4g")
def test_a_selector_whose_worst_case_is_too_expensive_is_forbidden() -> None:
    expression = (
        "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, a == d))))"
    )
    assert check_selector(expression, False) == (
        Cause("FieldValueForbidden", "Forbidden: too complex, exceeds cost limit", ""),
    )


def test_the_work_of_a_selector_is_that_of_its_patterns_every_time() -> None:
    plain, pattern = 'device.driver == "a"', r'device.driver.matches("a{100}\\pL")'
    assert selector_work(plain, False) == 0
    assert selector_work(pattern, False) == selector_work(pattern, False) > 100


def test_a_pattern_beyond_a_limit_is_named_with_the_limit() -> None:
    (cause,) = check_selector(r'device.driver.matches("\\pL{900}")', False)
    assert "expression too large: more than 1048576 bytes when compiled: `\\pL{900}`" in cause.message
    assert selector_work(r'device.driver.matches("\\pL{900}")', False) > 10_000
