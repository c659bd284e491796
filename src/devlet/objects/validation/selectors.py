"""Rules for device selectors, `{cel: {expression}}`.

The compiler lives in another room and comes in as `SelectorCheck`. It is not asked about expressions that are too long.
"""

from collections.abc import Callable, Sequence

from devlet.errors import Cause
from devlet.objects.documents import Document
from devlet.objects.validation.field_errors import Causes, byte_length, required, too_long, too_many

SELECTORS_MAX = 32
EXPRESSION_MAX = 10 * 1024

SelectorCheck = Callable[[str, bool], Sequence[Cause]]
"""What is wrong with an expression. True means that it was accepted before and is stored: everything that any version
accepted must pass. The causes' `field` is ignored; use the functions of `field_errors` with an empty path."""


def accept_any(_expression: str, _stored: bool) -> Sequence[Cause]:
    return ()


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
