"""Rules for device selectors, `{cel: {expression}}`.

The compiler belongs to another package and is passed in as `SelectorCheck`. It is not called for expressions that are
too long.
"""

from collections.abc import Callable, Sequence

from devlet.errors import Cause
from devlet.objects.documents import Document
from devlet.objects.validation.field_errors import Causes, byte_length, forbidden, required, too_long, too_many

SELECTORS_MAX = 32
EXPRESSION_MAX = 10 * 1024
PATTERN_WORK_MAX = 500_000  # compiled instructions of all regular expressions of an object

SelectorCheck = Callable[[str, bool], Sequence[Cause]]
"""Returns the errors of an expression. True means that it is stored, so everything that any version accepted must pass.
The causes' `field` is ignored; use the functions of `field_errors` with an empty path."""


SelectorWork = Callable[[str, bool], int]
"""Returns the number of instructions that the regular expressions in an expression compile to."""


def accept_any(_expression: str, _stored: bool) -> Sequence[Cause]:
    return ()


def no_work(_expression: str, _stored: bool) -> int:
    return 0


def within_budget(check_selector: SelectorCheck, work: SelectorWork) -> SelectorCheck:
    """Return the same check for the selectors of one object, with a common budget."""
    spent = 0

    def check_next(expression: str, stored: bool) -> Sequence[Cause]:
        nonlocal spent
        if spent > PATTERN_WORK_MAX and not stored:
            limit = f"the limit of {PATTERN_WORK_MAX} instructions"
            return (forbidden("", f"the regular expressions of this object, compiled, exceed {limit}"),)
        causes = check_selector(expression, stored)
        spent += work(expression, stored)
        return causes

    return check_next


def check(selectors: list[Document], path: str, check_selector: SelectorCheck, stored: bool = False) -> Causes:
    if len(selectors) > SELECTORS_MAX:
        yield too_many(path, len(selectors), SELECTORS_MAX)
        return
    for i, selector in enumerate(selectors):
        cel = selector.get("cel")
        if cel is None:
            yield required(f"{path}[{i}].cel")
        else:
            yield from _check_expression(
                cel.get("expression", ""), f"{path}[{i}].cel.expression", check_selector, stored
            )


def _check_expression(expression: str, path: str, check_selector: SelectorCheck, stored: bool) -> Causes:
    if not expression:
        yield required(path)
    elif byte_length(expression) > EXPRESSION_MAX:
        yield too_long(path, EXPRESSION_MAX)
    else:
        for cause in check_selector(expression, stored):
            yield Cause(cause.reason, cause.message, path)
