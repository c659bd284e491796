"""Hypothesis strategies for what users create: selectors, requests, claims, templates, classes."""

from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from devlet.objects.documents import Document
from devlet.testing.strategy_devices import EFFECTS, Text, text
from devlet.testing.strategy_names import (
    annotations,
    device_identifiers,
    dns_labels,
    dns_subdomains,
    driver_names,
    label_keys,
    label_values,
    labels,
    optional,
    qualified_names,
    quantities,
    resource_names,
)

__all__ = ["claim_specs", "configs", "device_classes", "requests", "resource_claims", "selectors", "templates"]

API = "resource.k8s.io/v1"
DEPTH = 4  # conditions in one selector

_COUNTS: SearchStrategy[Document] = st.one_of(
    optional({"count": st.integers(1, 9)}), st.just({"allocationMode": "All"})
)
_PARAMETERS = st.dictionaries(
    dns_labels(), st.one_of(st.integers(0, 9), st.booleans(), st.none(), label_values()), max_size=3
)
_OPAQUE = st.fixed_dictionaries({"driver": driver_names(), "parameters": _PARAMETERS})


# Conditions


@cache
def selectors(driver: Text | None = None) -> SearchStrategy[Document]:
    """Generate CEL that compiles and is not too expensive. It is true or false for every device: a missing attribute
    has a default, and one of another type is not equal."""
    return expressions(driver).map(lambda expression: {"cel": {"expression": expression}})


@cache
def expressions(driver: Text | None = None) -> SearchStrategy[str]:
    atoms = _conditions(driver)
    both = ("({} && {})", "({} || {})")
    return st.recursive(
        atoms,
        lambda parts: st.one_of(
            parts.map("!({})".format),
            st.builds(lambda form, one, other: form.format(one, other), st.sampled_from(both), parts, parts),
        ),
        max_leaves=DEPTH,
    )


@cache
@st.composite
def _conditions(draw: DrawFn, driver: Text | None) -> str:
    domain, name = draw(text(driver, driver_names())), draw(device_identifiers().filter(lambda n: n not in _WORDS))
    mine = f'device.attributes["{domain}"]'
    word = draw(label_values())
    forms = [
        f'device.driver == "{domain}"',
        "device.allowMultipleAllocations",
        f'"{name}" in {mine}',
        f'{mine}.?{name}.orValue("") == "{word}"',
        f"{mine}.?{name}.orValue(0) in [{draw(st.integers(0, 99))}, {draw(st.integers(0, 99))}]",
        f"{mine}.?{name}.orValue(false) == true",
        f'"{name}" in device.capacity["{domain}"]',
        f'device.capacity["{domain}"].?{name}.orValue(quantity("0")).compareTo(quantity("{draw(_amounts())}")) >= 0',
    ]
    return draw(st.sampled_from(forms))


def _amounts() -> SearchStrategy[str]:
    return st.integers(0, 100).map("{}Gi".format)


# Keywords of CEL, which cannot be field names there.
_WORDS = frozenset(
    "true false null in as break const continue else for function if import let loop package namespace return var "
    "void while".split()
)


# Requests


@st.composite
def requests(draw: DrawFn, name: Text | None = None, *, device_class: Text | None = None) -> Document:
    """Generate one request: exactly one, or the first available alternative."""
    found: Document = {"name": draw(text(name, dns_labels()))}
    if draw(st.booleans()):
        return found | {"exactly": draw(_wishes(device_class))}
    names = draw(st.lists(dns_labels(), min_size=1, max_size=3, unique=True))
    return found | {"firstAvailable": [{"name": each, **draw(_wishes(device_class))} for each in names]}


@cache
@st.composite
def _wishes(draw: DrawFn, device_class: Text | None) -> Document:
    found: Document = {"deviceClassName": draw(text(device_class, dns_subdomains()))}
    return found | draw(_COUNTS) | draw(_details())


@cache
def _details() -> SearchStrategy[Document]:
    amounts = st.dictionaries(qualified_names(), quantities(), min_size=1, max_size=2)
    return optional(
        {
            "selectors": st.lists(selectors(), min_size=1, max_size=2),
            "tolerations": st.lists(tolerations(), min_size=1, max_size=2),
            "capacity": amounts.map(lambda each: {"requests": each}),
        }
    )


@cache
def tolerations() -> SearchStrategy[Document]:
    """Generate tolerations of device taints."""
    more: dict[str, SearchStrategy[Any]] = {"effect": st.sampled_from(EFFECTS)}
    equal = {"key": label_keys(), "operator": st.just("Equal"), "value": label_values()}
    exists = {"operator": st.just("Exists")}
    return st.one_of(
        st.fixed_dictionaries(exists, optional=more | {"key": label_keys()}),
        st.fixed_dictionaries(equal, optional=more),
    )


def configs(references: list[str] | None = None) -> SearchStrategy[Document]:
    """Generate parameters for a driver; with `references`, for some of these requests."""
    more = {"requests": _some(references)} if references else {}
    return st.fixed_dictionaries({"opaque": _OPAQUE}, optional=more)


def _some(references: list[str]) -> SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(references), min_size=1, max_size=3, unique=True)


@st.composite
def claim_specs(draw: DrawFn, *, device_class: Text | None = None, max_requests: int = 3) -> Document:
    names = draw(st.lists(dns_labels(), min_size=1, max_size=max_requests, unique=True))
    asked = [draw(requests(name, device_class=device_class)) for name in names]
    known = names + [f"{each['name']}/{sub['name']}" for each in asked for sub in each.get("firstAvailable", ())]
    more: dict[str, SearchStrategy[Any]] = {
        "constraints": st.lists(_constraints(known), min_size=1, max_size=2),
        "config": st.lists(configs(known), min_size=1, max_size=2),
    }
    return {"devices": {"requests": asked, **draw(optional(more))}}


@st.composite
def _constraints(draw: DrawFn, references: list[str]) -> Document:
    attribute = f"{draw(driver_names())}/{draw(device_identifiers())}"
    found = {draw(st.sampled_from(("matchAttribute", "distinctAttribute"))): attribute}
    return found | draw(optional({"requests": _some(references)}))


# Objects


@st.composite
def resource_claims(
    draw: DrawFn, *, name: Text | None = None, device_class: Text | None = None, max_requests: int = 3
) -> Document:
    """Generate claims without a status: they are not allocated."""
    spec = draw(claim_specs(device_class=device_class, max_requests=max_requests))
    metadata = {"name": draw(text(name, dns_subdomains())), "namespace": "default"}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": metadata | draw(_notes()), "spec": spec}


@st.composite
def templates(
    draw: DrawFn, *, name: Text | None = None, device_class: Text | None = None, max_requests: int = 3
) -> Document:
    spec = {"spec": draw(claim_specs(device_class=device_class, max_requests=max_requests))}
    spec |= draw(optional({"metadata": _notes()}))
    metadata = {"name": draw(text(name, dns_subdomains())), "namespace": "default"}
    return {"apiVersion": API, "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": spec}


@st.composite
def device_classes(draw: DrawFn, *, name: Text | None = None, driver: Text | None = None) -> Document:
    metadata = {"name": draw(text(name, dns_subdomains()))}
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": metadata, "spec": draw(_class_specs(driver))}


@cache
def _class_specs(driver: Text | None) -> SearchStrategy[Document]:
    return optional(
        {
            "selectors": st.lists(selectors(driver), min_size=1, max_size=2),
            "config": st.lists(configs(), min_size=1, max_size=2),
            "extendedResourceName": resource_names(),
        }
    )


@cache
def _notes() -> SearchStrategy[Document]:
    return optional({"labels": labels(), "annotations": annotations()})
