"""Hypothesis strategies for API objects, all of which an API server accepts.

    from hypothesis import given
    from devlet.testing import strategies

    @given(strategies.resource_slices(driver="gpu.example.com", node="n1"))
    def test_my_driver_understands_its_own_slices(resource_slice): ...

Objects are plain documents, and get simpler when a test fails: fewer devices, fewer fields, names of one letter. A
keyword argument may be a string, or a strategy. For strategies of parts see `strategy_names`,
`strategy_devices` and `strategy_claims`.

Objects that are drawn separately do not fit together: a class that a claim names does not exist unless both get the
same name.
"""

try:
    import hypothesis  # noqa: F401
except ImportError as e:
    raise ImportError("devlet.testing.strategies needs hypothesis: run `pip install hypothesis`") from e

from devlet.testing.strategy_claims import device_classes, requests, resource_claims, selectors, templates
from devlet.testing.strategy_devices import attributes, devices, pools, resource_slices
from devlet.testing.strategy_names import (
    dns_labels,
    dns_subdomains,
    driver_names,
    labels,
    pool_names,
    quantities,
    resource_names,
    versions,
)
from devlet.testing.strategy_pods import nodes, pods

__all__ = [
    "attributes",
    "device_classes",
    "devices",
    "dns_labels",
    "dns_subdomains",
    "driver_names",
    "labels",
    "nodes",
    "pods",
    "pool_names",
    "pools",
    "quantities",
    "requests",
    "resource_claims",
    "resource_names",
    "resource_slices",
    "selectors",
    "templates",
    "versions",
]
