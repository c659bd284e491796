"""Clauses of a literal format against the types of a literal list. Texts are the reference's."""

import pytest

from devlet.cel.checker import check
from devlet.cel.environment import kubernetes
from devlet.cel.issues import CompileError
from devlet.cel.parser import parse

BASE = kubernetes((1, 36), stored=True)


def issues(expression: str) -> list[tuple[str, int]]:
    try:
        check(parse(expression, BASE.macros), BASE)
    except CompileError as e:
        return [(issue.message, issue.offset) for issue in e.issues]
    return []


@pytest.mark.parametrize(
    ("clause", "argument", "reason"),
    [
        ("%d", "'a'", "decimal clause can only be used on integers, was given string"),
        ("%f", "1", "fixed-point clause can only be used on doubles, was given int"),
        ("%.3e", "1u", "scientific clause can only be used on doubles, was given uint"),
        ("%b", "1.0", "only integers and bools can be formatted as binary, was given double"),
        ("%X", "null", "only integers, byte buffers, and strings can be formatted as hex, was given null_type"),
        ("%o", "true", "octal clause can only be used on integers, was given bool"),
    ],
)
def test_a_clause_takes_certain_types_and_the_argument_is_blamed(clause: str, argument: str, reason: str) -> None:
    template = f"'{clause}'.format(["
    assert issues(f"{template}{argument}])") == [(f"error during formatting: {reason}", len(template))]


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("%", "unexpected end of string"),
        ("%d %d", "index 1 out of range"),
        ("%%", "too many arguments supplied to string.format (expected 0, got 1)"),
        ("%z", 'could not parse formatting clause: unrecognized formatting clause "z"'),
        ("%é", 'could not parse formatting clause: unrecognized formatting clause "Ã"'),
        (
            "%.3",
            "could not parse formatting clause: error while parsing precision: "
            "could not find end of precision specifier",
        ),
        (
            "%.f",
            "could not parse formatting clause: error while parsing precision: "
            'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax',
        ),
        (
            "%.99999999999999999999f",
            "could not parse formatting clause: error while parsing precision: error while converting precision "
            'to integer: strconv.Atoi: parsing "99999999999999999999": value out of range',
        ),
    ],
)
def test_a_bad_format_is_blamed_on_the_call(template: str, reason: str) -> None:
    assert issues(f"'{template}'.format([1])") == [(reason, len(template) + 2 + len(".format"))]


@pytest.mark.parametrize(
    ("argument", "name"),
    [("optional.of(1)", "optional_type"), ("[quantity('1')]", "kubernetes.Quantity"), ("{1: ip('::1')}", "net.IP")],
)
def test_not_everything_has_a_text(argument: str, name: str) -> None:
    ((message, _),) = issues(f"'%s'.format([{argument}])")
    assert message.startswith("error during formatting: string clause can only be used on strings, bools, bytes,")
    assert message.endswith(f"and timestamps, was given {name}")


@pytest.mark.parametrize(
    "expression",
    [
        "'100%% of %s %d %.2f %e %b %x %X %o'.format(['a', 1, 1.0, 2.0, true, b'a', 255, 8u])",
        "'%s %s %s %s'.format([[1], {'a': null}, int, duration('1s')])",
        "'%d'.format([dyn('a')])",
        "('%' + 'z').format([1])",
        "'%d'.format(dyn(['a']))",
        "'%f'.format(['NaN'])",
    ],
)
def test_what_fits_or_cannot_be_known_passes(expression: str) -> None:
    assert issues(expression) == []
