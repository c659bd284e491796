"""A device plugin: its socket, state, last error and devices."""

from collections.abc import Iterator

from devlet.cli.session import Document
from devlet.cli.views.reader import Reader
from devlet.cli.views.sheet import fields, moment, section, table
from devlet.node.devices.order import in_order
from devlet.objects.subdocuments import at, number, text
from devlet.objects.table_cells import since

PLUGINS = "plugins.devlet.dev"
DEVICES = "devices.devlet.dev"
MOST = 50  # devices; use `devlet get` for more

_MEANING = {
    "Silent": "connected, but it has not listed its devices yet",
    "Disconnected": "the connection was lost; its devices are no longer allocated",
    "Standby": "a newer plugin serves the resource; this one takes over if that one exits",
    "Refused": "registration failed; the plugin is registered as soon as an attempt succeeds",
    "Awaited": "known from before devlet started, but not registered again yet",
}


def view(plugin: Document, reader: Reader) -> Iterator[str]:
    resource = text(plugin, "spec", "resource")
    options = at(plugin, "spec", "options")
    yield from fields(
        [
            ("Resource", resource),
            ("Socket", text(plugin, "spec", "socket")),
            ("API", text(plugin, "spec", "api")),
            ("Process", at(plugin, "status", "pid")),
            ("Options", sorted(key for key, on in options.items() if on) if isinstance(options, dict) else []),
            ("State", state(plugin)),
            ("Since", moment(at(plugin, "status", "since"), reader.now)),
            ("Last error", text(plugin, "status", "message")),
            ("Devices", _counts(plugin)),
        ]
    )
    devices = [d for d in reader.all(DEVICES) if text(d, "spec", "resource") == resource]
    yield from section("List", _list(devices, resource, reader))


def state(plugin: Document) -> str:
    word = text(plugin, "status", "state")
    return f"{word}: {_MEANING[word]}" if word in _MEANING else word


def _counts(plugin: Document) -> str:
    return ", ".join(f"{number(plugin, 'status', key)} {key}" for key in ("healthy", "unhealthy", "held"))


def _list(devices: list[Document], resource: str, reader: Reader) -> Iterator[str]:
    ordered = in_order(devices, key=lambda device: text(device, "spec", "id"))
    header = ["ID", "HEALTH", "NUMA", "STATE", "HOLDER", "CONTAINER", "SINCE"]
    yield from table(header, [_row(device, reader) for device in ordered[:MOST]])
    if len(ordered) > MOST:
        yield f"and {len(ordered) - MOST} more: devlet get devices {resource}"


def _row(device: Document, reader: Reader) -> list[str]:
    holder = at(device, "status", "holder") or {}
    nodes = at(device, "spec", "numaNodes")
    pod = "/".join(part for part in (text(holder, "namespace"), text(holder, "pod")) if part)
    when = at(device, "status", "since")
    return [
        text(device, "spec", "id"),
        text(device, "status", "health"),
        ",".join(map(str, nodes)) if isinstance(nodes, list) else "",
        text(device, "status", "state"),
        pod or text(holder, "podUID"),
        text(holder, "container"),
        since(when, reader.now) if when else "",
    ]
