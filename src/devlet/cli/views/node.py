"""A node: its conditions and capacity, the devices of its plugins and drivers, and the pods bound to it."""

from collections.abc import Iterator

from devlet.cli.session import Document
from devlet.cli.views.plugin import PLUGINS
from devlet.cli.views.reader import Reader
from devlet.cli.views.sheet import conditions, fields, section, table
from devlet.objects.subdocuments import at, mappings, number, text

SLICES = "resourceslices.resource.k8s.io"
DAMAGED = "DeviceCheckpointDamaged"


def view(node: Document, reader: Reader) -> Iterator[str]:
    name = text(node, "metadata", "name")
    yield from _damage(node)
    addresses = [f"{text(a, 'type')} {text(a, 'address')}" for a in mappings(node, "status", "addresses")]
    taints = [f"{text(t, 'key')}={text(t, 'value')}:{text(t, 'effect')}" for t in mappings(node, "spec", "taints")]
    yield from fields(
        [
            ("Version", text(node, "status", "nodeInfo", "kubeletVersion")),
            ("Addresses", addresses),
            ("Taints", taints),
            ("Unschedulable", bool(at(node, "spec", "unschedulable"))),
        ]
    )
    yield from conditions(node)
    yield from section("Resources", _resources(node, _plugins(reader)))
    yield from section(
        "Devices of slices", _slices(reader.all(SLICES, query=[("fieldSelector", f"spec.nodeName={name}")]))
    )
    yield from section("Pods", _pods(reader.all("pods", query=[("fieldSelector", f"spec.nodeName={name}")])))


def _damage(node: Document) -> Iterator[str]:
    """Yield the damage of checkpoints, shown first because devices may be allocated twice until it is repaired."""
    for condition in mappings(node, "status", "conditions"):
        if text(condition, "type") == DAMAGED and text(condition, "status") == "True":
            found = text(condition, "message").split("; ")
            files = [file for file, word, _ in (each.partition(" was damaged") for each in found) if word]
            steps = [_repair(file) for file in files]
            yield from fields([("DAMAGE", found), ("Next step", steps or "devlet checkpoint repair FILE")])


def _repair(file: str) -> str:
    into = file.partition(".damaged-")[0]
    return f"stop devlet; devlet checkpoint repair {file} --output {into} --force; move {file} away"


def _plugins(reader: Reader) -> dict[str, Document]:
    """Return the plugins by resource, or none if there are several nodes, because plugins do not name theirs."""
    if len(reader.all("nodes")) > 1:
        return {}
    found: dict[str, Document] = {}
    for plugin in reader.all(PLUGINS):
        if text(plugin, "status", "state") != "Standby":
            found.setdefault(text(plugin, "spec", "resource"), plugin)
    return found


def _resources(node: Document, plugins: dict[str, Document]) -> Iterator[str]:
    capacity, allocatable = at(node, "status", "capacity") or {}, at(node, "status", "allocatable") or {}
    rows = [[key, capacity.get(key), allocatable.get(key)] for key in sorted({*capacity, *allocatable, *plugins})]
    if not plugins:
        return table(["NAME", "CAPACITY", "ALLOCATABLE"], rows)
    shown = [[*row, *_offered(plugins.get(row[0]))] for row in rows]
    return table(["NAME", "CAPACITY", "ALLOCATABLE", "HELD", "PLUGIN"], shown)


def _offered(plugin: Document | None) -> list[str]:
    if plugin is None:
        return ["", ""]
    return [str(number(plugin, "status", "held")), text(plugin, "status", "state")]


def _slices(slices: list[Document]) -> Iterator[str]:
    rows = []
    for found in slices:
        names = [text(device, "name") for device in mappings(found, "spec", "devices")]
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        rows.append([text(found, "spec", "driver"), text(found, "spec", "pool", "name"), shown])
    return table(["DRIVER", "POOL", "DEVICES"], sorted(rows))


def _pods(pods: list[Document]) -> Iterator[str]:
    rows = [[text(p, "metadata", "namespace"), text(p, "metadata", "name"), text(p, "status", "phase")] for p in pods]
    return table(["NAMESPACE", "NAME", "STATUS"], sorted(rows))
