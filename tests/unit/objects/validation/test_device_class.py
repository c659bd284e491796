from typing import Any

import pytest

from devlet.errors import Cause
from devlet.objects.documents import Document
from devlet.objects.validation import device_class
from devlet.objects.validation.field_errors import forbidden, invalid, too_long, too_many

SELECTORS = [{"cel": {"expression": "a"}}, {"cel": {"expression": "b"}}]
BIG = {"opaque": {"driver": "d", "parameters": {"s": "x" * 10240}}}


def refuse_new(expression: str, stored: bool) -> list[Cause]:
    return [] if stored else [forbidden("", "too complex, exceeds cost limit")]


def check(spec: Document, old: Document | None = None) -> list[Cause]:
    stored = None if old is None else {"spec": old}
    return list(device_class.check({"spec": spec}, stored, refuse_new))


@pytest.mark.spec("AL-2.27")
def test_selectors_that_did_not_change_count_as_stored() -> None:
    assert len(check({"selectors": SELECTORS})) == 2
    assert check({"selectors": SELECTORS}, {"selectors": SELECTORS}) == []


@pytest.mark.spec("AL-2.27")
def test_reordering_the_selectors_is_a_change() -> None:
    assert len(check({"selectors": SELECTORS[::-1]}, {"selectors": SELECTORS})) == 2


@pytest.mark.spec("AL-2.27")
def test_parameters_that_did_not_change_may_have_any_size() -> None:
    assert check({"config": [BIG]}) == [too_long("spec.config[0].opaque.parameters", 10240)]
    assert check({"config": [BIG]}, {"config": [BIG]}) == []
    assert len(check({"config": [BIG, BIG]}, {"config": [BIG]})) == 2


@pytest.mark.spec("KA-7.3.8")
def test_the_spec_may_change() -> None:
    assert check({"extendedResourceName": "a.io/gpu"}, {"selectors": SELECTORS}) == []


@pytest.mark.spec("AL-2.28")
@pytest.mark.parametrize(
    "name", ["example.com", "", "deviceclass.resource.kubernetes.io/x", "kubernetes.io/gpu", "a/b/c"]
)
def test_an_extended_resource_has_a_domain_that_is_not_kubernetes(name: str) -> None:
    expected = invalid("spec.extendedResourceName", name, "must be a valid extended resource name")
    assert check({"extendedResourceName": name}) == [expected]


@pytest.mark.parametrize("member", ["selectors", "config"])
def test_the_elements_of_a_list_that_is_too_long_are_not_checked(member: str) -> None:
    items: list[Any] = [{}] * 33
    assert check({member: items}) == [too_many(f"spec.{member}", 33, 32)]
