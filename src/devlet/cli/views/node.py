"""A node: its health and capacity, the devices drivers publish on it, and the pods bound to it."""

from collections.abc import Iterator

from devlet.cli.session import Document
from devlet.cli.views.reader import Reader
from devlet.cli.views.sheet import conditions, fields, section, table
from devlet.serve.kube_api.table_cells import at, documents_at, text

SLICES = "resourceslices.resource.k8s.io"


def view(node: Document, reader: Reader) -> Iterator[str]:
    name = text(node, "metadata", "name")
    addresses = [f"{text(a, 'type')} {text(a, 'address')}" for a in documents_at(node, "status", "addresses")]
    taints = [f"{text(t, 'key')}={text(t, 'value')}:{text(t, 'effect')}" for t in documents_at(node, "spec", "taints")]
    yield from fields(
        [
            ("Version", text(node, "status", "nodeInfo", "kubeletVersion")),
            ("Addresses", addresses),
            ("Taints", taints),
            ("Unschedulable", bool(at(node, "spec", "unschedulable"))),
        ]
    )
    yield from conditions(node)
    yield from section("Resources", _resources(node))
    yield from section("Devices", _slices(reader.all(SLICES, query=[("fieldSelector", f"spec.nodeName={name}")])))
    yield from section("Pods", _pods(reader.all("pods", query=[("fieldSelector", f"spec.nodeName={name}")])))


def _resources(node: Document) -> Iterator[str]:
    capacity, allocatable = at(node, "status", "capacity") or {}, at(node, "status", "allocatable") or {}
    rows = [[key, capacity.get(key), allocatable.get(key)] for key in sorted({*capacity, *allocatable})]
    return table(["NAME", "CAPACITY", "ALLOCATABLE"], rows)


def _slices(slices: list[Document]) -> Iterator[str]:
    rows = []
    for found in slices:
        names = [text(device, "name") for device in documents_at(found, "spec", "devices")]
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        rows.append([text(found, "spec", "driver"), text(found, "spec", "pool", "name"), shown])
    return table(["DRIVER", "POOL", "DEVICES"], sorted(rows))


def _pods(pods: list[Document]) -> Iterator[str]:
    rows = [[text(p, "metadata", "namespace"), text(p, "metadata", "name"), text(p, "status", "phase")] for p in pods]
    return table(["NAMESPACE", "NAME", "STATUS"], sorted(rows))
