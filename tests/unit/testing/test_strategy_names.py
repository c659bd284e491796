from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from devlet.objects import names
from devlet.objects.values.quantity import Quantity
from devlet.objects.values.semver import is_semver
from devlet.testing import strategy_names as own

RULES: dict[str, tuple[SearchStrategy[str], Callable[[str], tuple[str, ...]]]] = {
    "dns_labels": (own.dns_labels(), names.dns_label),
    "dns_subdomains": (own.dns_subdomains(), names.dns_subdomain),
    "driver_names": (own.driver_names(), names.driver_name),
    "pool_names": (own.pool_names(), names.pool_name),
    "qualified_names": (own.qualified_names(), names.device_qualified_name),
    "device_identifiers": (own.device_identifiers(), names.c_identifier),
    "resource_names": (own.resource_names(), names.extended_resource_name),
    "label_keys": (own.label_keys(), names.label_key),
    "label_values": (own.label_values(), names.label_value),
}


@pytest.mark.parametrize("kind", RULES)
@given(data=st.data())
def test_every_name_is_one(kind: str, data: st.DataObject) -> None:
    strategy, rule = RULES[kind]
    assert rule(data.draw(strategy)) == ()


@given(quantity=own.quantities())
def test_every_quantity_is_one_and_not_negative(quantity: str) -> None:
    assert Quantity.parse(quantity).sign >= 0


@given(version=own.versions())
def test_every_version_is_one(version: str) -> None:
    assert is_semver(version) and len(version) <= 64


@given(text=own.texts())
def test_a_text_has_at_most_64_bytes(text: str) -> None:
    assert len(text.encode()) <= 64


@given(labels=own.labels(), annotations=own.annotations())
def test_labels_and_annotations_have_valid_keys(labels: dict[str, str], annotations: dict[str, str]) -> None:
    assert not any(map(names.label_key, {**labels, **annotations}))


@given(found=own.optional({"a": st.just(1), "b": st.just(2)}))
def test_optional_members_are_there_or_not(found: dict[str, int]) -> None:
    assert found.items() <= {"a": 1, "b": 2}.items()
