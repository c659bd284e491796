"""A device: its health, NUMA nodes, plugin and holder, and what the holder's container got with it."""

from collections.abc import Iterator

from devlet.cli.session import Document
from devlet.cli.views import container_spec
from devlet.cli.views.plugin import PLUGINS, state
from devlet.cli.views.reader import Reader
from devlet.cli.views.sheet import fields, moment, section
from devlet.objects.subdocuments import at, mappings, text, texts

HOLDERS = "holders.devlet.dev"
_UNLISTED = "Unknown"


def view(device: Document, reader: Reader) -> Iterator[str]:
    if not text(device, "spec", "resource"):
        yield from _contested(device, reader)
        return
    nodes = at(device, "spec", "numaNodes")
    yield from fields(
        [
            ("Resource", text(device, "spec", "resource")),
            ("ID", text(device, "spec", "id")),
            ("Health", _health(device)),
            ("NUMA nodes", ", ".join(map(str, nodes)) if isinstance(nodes, list) else ""),
            ("Plugin", _plugin(device, reader)),
            ("State", text(device, "status", "state")),
        ]
    )
    if holder := at(device, "status", "holder"):
        yield from _held(device, holder, reader)


def _contested(device: Document, reader: Reader) -> Iterator[str]:
    """Describe a device of a DRA driver that several claims want."""
    yield from fields(
        [
            ("Driver", text(device, "spec", "driver")),
            ("Pool", text(device, "spec", "pool")),
            ("Device", text(device, "spec", "id")),
            ("State", text(device, "status", "state")),
            ("Prepared for", ", ".join(f"claim {each}" for each in texts(device, "status", "claims"))),
            ("Wanted by", ", ".join(f"claim {each}" for each in texts(device, "status", "waiting"))),
            ("Since", moment(at(device, "status", "since"), reader.now)),
        ]
    )


def _held(device: Document, holder: Document, reader: Reader) -> Iterator[str]:
    namespace, name = text(holder, "namespace"), text(holder, "pod")
    found = reader.one(HOLDERS, namespace, name) if namespace and name else None
    phase = text(found or {}, "status", "phase")
    pod = f"{namespace}/{name}" if name else "no longer in the cluster"
    yield from fields(
        [
            ("Pod", f"{pod} ({phase})" if phase else pod),
            ("Pod UID", text(holder, "podUID")),
            ("Container", text(holder, "container")),
            ("Since", moment(at(device, "status", "since"), reader.now) or "before devlet started"),
        ]
    )
    for container in mappings(found or {}, "status", "containers"):
        if text(container, "name") == text(holder, "container"):
            yield from section("Given to the container", container_spec.lines(container))


def _health(device: Document) -> str:
    health = text(device, "status", "health")
    return f"{health}: its plugin does not list the device" if health == _UNLISTED else health


def _plugin(device: Document, reader: Reader) -> str:
    resource = text(device, "spec", "resource")
    plugins = [p for p in reader.all(PLUGINS) if text(p, "spec", "resource") == resource]
    if not plugins:
        return "none: no plugin serves the resource now"
    return "; ".join(f"{text(p, 'spec', 'socket') or resource} ({state(p)})" for p in plugins)
