import pytest

from devlet.errors import Cause
from devlet.objects.validation import selectors
from devlet.objects.validation.field_errors import forbidden, invalid, required, too_long, too_many
from devlet.objects.validation.selectors import PATTERN_WORK_MAX, no_work, within_budget


def refuse(expression: str, stored: bool) -> list[Cause]:
    """Knows no variable, and nothing is too complex once it is stored."""
    if expression == "noSuchVar":
        return [invalid("", expression, "compilation failed: undeclared reference")]
    if expression == "complex" and not stored:
        return [forbidden("", "too complex, exceeds cost limit")]
    return []


def cel(expression: str) -> dict[str, object]:
    return {"cel": {"expression": expression}}


@pytest.mark.spec("AL-2.08")
def test_a_selector_has_an_expression() -> None:
    causes = list(selectors.check([{}, cel("")], "s", refuse))
    assert causes == [required("s[0].cel"), required("s[1].cel.expression")]


@pytest.mark.spec("AL-2.09")
@pytest.mark.parametrize(
    ("expression", "cause"),
    [
        ("noSuchVar", invalid("s[0].cel.expression", "noSuchVar", "compilation failed: undeclared reference")),
        ("complex", forbidden("s[0].cel.expression", "too complex, exceeds cost limit")),
        ("x" * 10241, too_long("s[0].cel.expression", 10240)),
        ("ä" * 5121, too_long("s[0].cel.expression", 10240)),
    ],
)
def test_an_expression_compiles_and_is_cheap_and_short(expression: str, cause: Cause) -> None:
    assert list(selectors.check([cel(expression)], "s", refuse)) == [cause]


@pytest.mark.spec("AL-2.09")
def test_expressions_that_are_too_long_are_not_compiled() -> None:
    asked: list[str] = []

    def ask(expression: str, stored: bool) -> list[Cause]:
        asked.append(expression)
        return []

    list(selectors.check([cel("x" * 10240), cel("x" * 10241)], "s", ask))
    assert asked == ["x" * 10240]


def test_a_stored_expression_is_checked_in_the_permissive_environment() -> None:
    assert list(selectors.check([cel("complex")], "s", refuse, stored=True)) == []


def test_too_many_selectors_are_not_checked_individually() -> None:
    assert list(selectors.check([{}] * 33, "s", refuse)) == [too_many("s", 33, 32)]


def test_without_a_compiler_every_expression_is_accepted() -> None:
    assert list(selectors.check([cel("1 +")], "s", selectors.accept_any)) == []


def test_the_selectors_of_one_object_share_a_budget_for_patterns() -> None:
    asked: list[str] = []

    def check_one(expression: str, _stored: bool) -> tuple[Cause, ...]:
        asked.append(expression)
        return ()

    budgeted = within_budget(check_one, lambda _expression, _stored: PATTERN_WORK_MAX // 2 + 1)
    assert [len(budgeted(text, False)) for text in "abcd"] == [0, 0, 1, 1]
    assert asked == ["a", "b"]
    assert "exceed the limit of 500000 instructions" in budgeted("e", False)[0].message
    assert budgeted("stored before", True) == ()
    assert within_budget(check_one, no_work)("of the next object", False) == ()
