"""Hypothesis strategies for what drivers publish: devices, slices, whole pools."""

from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from devlet.objects.documents import Document
from devlet.testing.strategy_names import (
    dns_labels,
    dns_subdomains,
    driver_names,
    label_keys,
    label_values,
    optional,
    pool_names,
    qualified_names,
    quantities,
    texts,
    versions,
)

__all__ = [
    "Text",
    "attributes",
    "capacities",
    "devices",
    "node_selectors",
    "pools",
    "resource_slices",
    "taints",
    "text",
]

Text = str | SearchStrategy[str]
"""A name that is given, or one to be found."""

DEVICES_MAX = 64  # of a slice in which devices have taints, counters or lists
VALUES_MAX = 4  # attributes, and values of a list
EFFECTS = ("NoSchedule", "NoExecute", "None")

_INT64 = st.integers(-(2**63), 2**63 - 1)
_SCALARS: dict[str, SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int": st.one_of(st.integers(0, 9), _INT64),
    "string": texts(),
    "version": versions(),
}


def text(given: Text | None, otherwise: SearchStrategy[str]) -> SearchStrategy[str]:
    return otherwise if given is None else st.just(given) if isinstance(given, str) else given


@cache
def attributes() -> SearchStrategy[Document]:
    """Generate attributes by name, with single values of all types, and with lists."""
    single = [st.fixed_dictionaries({kind: values}) for kind, values in _SCALARS.items()]
    several = [
        st.fixed_dictionaries({f"{kind}s": st.lists(values, min_size=1, max_size=VALUES_MAX)})
        for kind, values in _SCALARS.items()
    ]
    return st.dictionaries(qualified_names(), st.one_of(*single, *several), max_size=VALUES_MAX)


@cache
@st.composite
def capacities(draw: DrawFn, shared: bool = False) -> Document:
    """Generate capacities by name. Those of a shared device may have a policy for requests."""
    names = draw(st.lists(qualified_names(), unique=True, max_size=4))
    return {name: draw(_policed() if shared and draw(st.booleans()) else _capacity()) for name in names}


@cache
def _capacity() -> SearchStrategy[Document]:
    return st.fixed_dictionaries({"value": quantities()})


@cache
@st.composite
def _policed(draw: DrawFn) -> Document:
    total = draw(st.integers(1, 100))
    policy = draw(st.one_of(_only_default(total), _valid_values(total), _valid_range(total)))
    return {"value": f"{total}Gi", "requestPolicy": policy}


def _only_default(total: int) -> SearchStrategy[Document]:
    return st.integers(0, total).map(lambda amount: {"default": f"{amount}Gi"})


@st.composite
def _valid_values(draw: DrawFn, total: int) -> Document:
    values = sorted(draw(st.sets(st.integers(1, total), min_size=1, max_size=10)))
    return {"default": f"{draw(st.sampled_from(values))}Gi", "validValues": [f"{each}Gi" for each in values]}


@st.composite
def _valid_range(draw: DrawFn, total: int) -> Document:
    least = draw(st.integers(1, total))
    step = draw(st.integers(1, max(1, total - least)))
    steps = (total - least) // step
    found: Document = {"min": f"{least}Gi"}
    if steps and draw(st.booleans()):
        found["step"] = f"{step}Gi"
    if draw(st.booleans()):
        found["max"] = f"{least + steps * step}Gi"
    return {"default": f"{least + draw(st.integers(0, steps)) * step}Gi", "validRange": found}


@cache
def taints() -> SearchStrategy[Document]:
    needed = {"key": label_keys(), "effect": st.sampled_from(EFFECTS)}
    return st.fixed_dictionaries(needed, optional={"value": label_values()})


@st.composite
def devices(draw: DrawFn, name: Text | None = None) -> Document:
    """Generate a device of a slice for one node."""
    found: Document = {"name": draw(text(name, dns_labels()))}
    if draw(st.booleans()):
        found["allowMultipleAllocations"] = True
    found |= draw(_parts("allowMultipleAllocations" in found))
    return found | (draw(_bound()) if draw(st.booleans()) else {})


@cache
def _parts(shared: bool) -> SearchStrategy[Document]:
    some_taints = st.lists(taints(), min_size=1, max_size=2)
    return optional({"attributes": attributes(), "capacity": capacities(shared), "taints": some_taints})


@cache
def _bound() -> SearchStrategy[Document]:
    """Generate devices with binding conditions."""
    types = st.lists(label_keys(), min_size=2, max_size=4, unique=True)
    return types.map(
        lambda each: {"bindingConditions": each[:-1], "bindingFailureConditions": each[-1:], "bindsToNode": True}
    )


@cache
def node_selectors() -> SearchStrategy[Document]:
    """Generate node selectors with one term, as slices and devices have them."""
    values = st.lists(label_values(), min_size=1, max_size=2)
    expression = st.one_of(
        st.fixed_dictionaries({"key": label_keys(), "operator": st.sampled_from(("Exists", "DoesNotExist"))}),
        st.fixed_dictionaries({"key": label_keys(), "operator": st.sampled_from(("In", "NotIn")), "values": values}),
    )
    return st.lists(expression, min_size=1, max_size=2).map(
        lambda found: {"nodeSelectorTerms": [{"matchExpressions": found}]}
    )


@cache
def _nodes(node: Text | None) -> SearchStrategy[Document]:
    """Generate the nodes for a slice or a device."""
    one = text(node, dns_subdomains()).map(lambda name: {"nodeName": name})
    if node is not None:
        return one
    return st.one_of(one, st.just({"allNodes": True}), node_selectors().map(lambda found: {"nodeSelector": found}))


@st.composite
def resource_slices(
    draw: DrawFn, *, driver: Text | None = None, node: Text | None = None, max_devices: int = 4
) -> Document:
    """Generate the only slice of a pool. With `node` it is local to that node."""
    (found,) = draw(pools(driver=driver, node=node, max_devices=max_devices, max_slices=1))
    return found


@st.composite
def pools(
    draw: DrawFn,
    *,
    driver: Text | None = None,
    node: Text | None = None,
    pool: Text | None = None,
    max_devices: int = 4,
    max_slices: int = 3,
) -> list[Document]:
    """Generate all slices of a pool: it is complete, and its devices have different names. `max_devices` limits one
    slice. If there is room for another slice, devices may consume counters of the last one."""
    of = draw(text(driver, driver_names()))
    contents: list[Document] = draw(_contents(node, min(max_devices, DEVICES_MAX), max_slices))
    named = {"name": draw(text(pool, pool_names())), "generation": draw(st.integers(0, 9))}
    named["resourceSliceCount"] = len(contents)
    prefix = draw(dns_labels())
    return [_slice(f"{prefix}-{number}", of, named, content) for number, content in enumerate(contents)]


def _slice(name: str, driver: str, pool: Document, content: Document) -> Document:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": driver, "pool": dict(pool), **content},
    }


@st.composite
def _contents(draw: DrawFn, node: Text | None, max_devices: int, max_slices: int) -> list[Document]:
    where = draw(_nodes(node))
    counters = draw(_counters()) if max_slices > 1 and draw(st.booleans()) else None
    count = draw(st.integers(1, max_slices - (counters is not None)))
    made = draw(st.lists(devices(), unique_by=lambda each: str(each["name"]), max_size=max_devices * count))
    for each in made if counters else ():
        each |= draw(optional({"consumesCounters": _consumption(counters or {})}))
    size = max(1, -(-len(made) // count))
    parts = [made[size * number : size * (number + 1)] for number in range(count)]
    found = [draw(_placed(part, where)) for part in parts]
    return [*found, *([where | {"sharedCounters": [counters]}] if counters else [])]


@st.composite
def _placed(draw: DrawFn, made: list[Document], where: Document) -> Document:
    """Sometimes let each device select its own nodes."""
    if not made or "nodeName" in where or draw(st.booleans()):
        return where | {"devices": made}
    return {"perDeviceNodeSelection": True, "devices": [each | draw(_nodes(None)) for each in made]}


@cache
def _counters() -> SearchStrategy[Document]:
    value = st.integers(1, 100).map(lambda amount: {"value": f"{amount}Gi"})
    counters = st.dictionaries(dns_labels(), value, min_size=1, max_size=3)
    return st.fixed_dictionaries({"name": dns_labels(), "counters": counters})


def _consumption(counters: Document) -> SearchStrategy[list[Document]]:
    """Generate consumption within the counters."""
    some = st.sampled_from(sorted(counters["counters"])).map(lambda name: {name: dict(counters["counters"][name])})
    return some.map(lambda taken: [{"counterSet": counters["name"], "counters": taken}])
