"""Objects that scheduling is about, as documents: nodes, classes, slices, templates, claims and pods, in few words.

    node("n1"), device_class(), slice_of("n1", 4), template("one-gpu"), pod("train", template="one-gpu")

Everything is of the driver `gpu.example.com` unless told otherwise.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from devlet.objects.documents import Document
from devlet.testing import builders
from devlet.testing.builders import DRIVER, claim, template
from devlet.testing.builders import request as wish

__all__ = ["DRIVER", "claim", "device_class", "node", "pod", "slice_of", "template", "wish"]


def node(name: str, *, labels: Mapping[str, str] = {}, **allocatable: str) -> Document:
    """`allocatable` is what it has besides 4 cpu, 32Gi and 110 places, or instead; `_` stands for `-`."""
    amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    amounts |= {key.replace("_", "-"): value for key, value in allocatable.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def device_class(name: str = DRIVER, *, driver: str = DRIVER, extended: str = "") -> Document:
    return builders.device_class(name, driver=driver, extended=extended)


def slice_of(
    node: str, devices: int | Sequence[Document], *, driver: str = DRIVER, generation: int = 1, pool: str = ""
) -> Document:
    """The whole pool of a node."""
    return builders.resource_slice(node, devices, driver=driver, generation=generation, pool=pool)


def pod(
    name: str,
    *,
    template: str = "",
    claim: str = "",
    requests: Mapping[str, str] = {},
    annotations: Mapping[str, str] = {},
    **spec: Any,
) -> Document:
    """A pod with one container, which uses a claim or one that is made from a template. `spec` goes in as it is."""
    return builders.pod(name, template=template, claim=claim, limits=requests, annotations=annotations, **spec)
