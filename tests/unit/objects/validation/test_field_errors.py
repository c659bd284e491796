"""The texts are those of kube-apiserver: clients and people match on them."""

import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.validation import field_errors as fe

CASES = [
    (fe.required("p"), "FieldValueRequired", "Required value"),
    (fe.required("p", "say it"), "FieldValueRequired", "Required value: say it"),
    (fe.invalid("p", "x", "bad"), "FieldValueInvalid", 'Invalid value: "x": bad'),
    (fe.invalid("p", 0, "bad"), "FieldValueInvalid", "Invalid value: 0: bad"),
    (fe.invalid("p", False, "bad"), "FieldValueInvalid", "Invalid value: false: bad"),
    (fe.invalid("p", None, "bad"), "FieldValueInvalid", "Invalid value: null: bad"),
    (fe.invalid("p", {"a": [1]}, "bad"), "FieldValueInvalid", 'Invalid value: {"a":[1]}: bad'),
    (fe.invalid_omitted("p", "bad"), "FieldValueInvalid", 'Invalid value: "<value omitted>": bad'),
    (fe.duplicate("p", "x"), "FieldValueDuplicate", 'Duplicate value: "x"'),
    (
        fe.not_supported("p", "x", ("a", "b")),
        "FieldValueNotSupported",
        'Unsupported value: "x": supported values: "a", "b"',
    ),
    (fe.not_found("p", "x"), "FieldValueNotFound", 'Not found: "x"'),
    (fe.not_found("p", "x", "look elsewhere"), "FieldValueNotFound", 'Not found: "x": look elsewhere'),
    (fe.forbidden("p", "never"), "FieldValueForbidden", "Forbidden: never"),
    (fe.too_many("p", 129, 128), "FieldValueTooMany", "Too many: 129: must have at most 128 items"),
    (fe.too_long("p", 64), "FieldValueTooLong", "Too long: may not be more than 64 bytes"),
]


@pytest.mark.spec("KA-3.9-causes")
@pytest.mark.parametrize(("cause", "reason", "message"), CASES, ids=lambda case: getattr(case, "reason", ""))
def test_a_cause_has_the_reason_and_text_of_a_kubernetes_server(cause: Cause, reason: str, message: str) -> None:
    assert cause == Cause(reason, message, "p")


def test_a_name_that_is_too_long_is_reported_as_too_long() -> None:
    causes = list(fe.name_errors("p", "d" * 64, names.driver_name))
    assert causes == [fe.too_long("p", 63)]


def test_a_name_that_has_the_wrong_shape_is_invalid() -> None:
    (cause,) = fe.name_errors("p", "A", names.dns_label)
    assert cause.message.startswith('Invalid value: "A": a lowercase RFC 1123 label must consist of')


def test_a_missing_name_is_required() -> None:
    assert list(fe.required_name("p", "", names.dns_label)) == [fe.required("p")]
    assert list(fe.required_name("p", "x", names.dns_label)) == []


def test_a_duplicate_is_reported_at_each_later_item() -> None:
    assert list(fe.duplicates("p", ["a", "b", "a", "a"])) == [fe.duplicate("p[2]", "a"), fe.duplicate("p[3]", "a")]


def test_an_immutable_field_keeps_its_value() -> None:
    assert list(fe.immutable("p", {"a": [1]}, {"a": [1]})) == []
    assert list(fe.immutable("p", {"a": ""}, {})) == [fe.invalid("p", {"a": ""}, "field is immutable")]


def test_lengths_are_counted_in_bytes() -> None:
    assert (fe.byte_length("abc"), fe.byte_length("äöü")) == (3, 6)
