"""Hypothesis strategies for pods and nodes."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from devlet.objects.documents import Document
from devlet.testing import builders
from devlet.testing.strategy_devices import Text, text
from devlet.testing.strategy_names import (
    annotations,
    dns_labels,
    dns_subdomains,
    label_keys,
    label_values,
    labels,
    optional,
    quantities,
    resource_names,
)

__all__ = ["nodes", "pods"]

RESTARTS = ("Always", "OnFailure", "Never")
NODE_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@st.composite
def pods(
    draw: DrawFn,
    *,
    name: Text | None = None,
    claims: Sequence[str] | None = None,
    templates: Sequence[str] | None = None,
    resources: Sequence[str] | None = None,
    node: str = "",
    max_containers: int = 3,
) -> Document:
    """Generate pods whose containers use devices of plugins and of claims. `claims`, `templates` and `resources` are
    names to choose from: none if a list is empty, and any if it is not given."""
    entries = draw(_entries(claims, templates))
    names = draw(st.lists(dns_labels(), min_size=1, max_size=max_containers, unique=True))
    return builders.pod(
        draw(text(name, dns_subdomains())),
        claims={entry: each for entry, (kind, each) in entries.items() if kind == "claim"},
        templates={entry: each for entry, (kind, each) in entries.items() if kind == "template"},
        containers=[draw(_containers(each, sorted(entries), resources)) for each in names],
        node=node,
        restart=draw(st.sampled_from(RESTARTS)),
        labels=draw(labels()),
        annotations=draw(annotations()),
    )


def _entries(
    claims: Sequence[str] | None, templates: Sequence[str] | None
) -> SearchStrategy[dict[str, tuple[str, str]]]:
    """Generate what the entries refer to."""
    sources = [
        st.tuples(st.just(kind), dns_subdomains() if known is None else st.sampled_from(known))
        for kind, known in (("claim", claims), ("template", templates))
        if known is None or known
    ]
    return st.dictionaries(dns_labels(), st.one_of(*sources), max_size=2) if sources else st.just({})


@st.composite
def _containers(draw: DrawFn, name: str, entries: list[str], resources: Sequence[str] | None) -> Document:
    limits: Document = draw(optional({"cpu": st.just("100m"), "memory": st.just("64Mi")}))
    known = resource_names() if resources is None else st.sampled_from(resources) if resources else st.nothing()
    if resources is None or resources:
        limits |= draw(st.dictionaries(known, st.integers(0, 8).map(str), max_size=2))
    used = draw(st.lists(st.sampled_from(entries), unique=True)) if entries else []
    return builders.container(name, limits=limits, claims=used)


@st.composite
def nodes(draw: DrawFn, *, name: Text | None = None) -> Document:
    """Generate nodes with labels, taints and capacity, all of it allocatable."""
    amounts: Document = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    amounts |= draw(st.dictionaries(resource_names(), st.integers(0, 8).map(str), max_size=2))
    amounts |= draw(optional({"ephemeral-storage": quantities()}))
    chosen = draw(text(name, dns_subdomains()))
    spec = draw(optional({"taints": _taints()}))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": chosen, "labels": {**draw(labels()), "kubernetes.io/hostname": chosen[:63].strip("-.")}},
        "spec": spec,
        "status": {"capacity": amounts, "allocatable": dict(amounts)},
    }


@cache
def _taints() -> SearchStrategy[list[Document]]:
    needed: dict[str, SearchStrategy[Any]] = {"key": label_keys(), "effect": st.sampled_from(NODE_EFFECTS)}
    one = st.fixed_dictionaries(needed, optional={"value": label_values()})
    return st.lists(one, min_size=1, max_size=2, unique_by=lambda taint: (taint["key"], taint["effect"]))
