"""A pod that holds devices: which ones each container has, and what came with them."""

from collections.abc import Iterator

from devlet.cli.session import Document
from devlet.cli.views import container_options
from devlet.cli.views.reader import Reader
from devlet.cli.views.sheet import fields, moment, section, table
from devlet.node.devices.order import in_order
from devlet.serve.kube_api.table_cells import at, documents_at, text, texts


def view(holder: Document, reader: Reader) -> Iterator[str]:
    yield from fields(
        [
            ("Pod UID", text(holder, "spec", "podUID")),
            ("Phase", text(holder, "status", "phase")),
            ("Since", moment(at(holder, "status", "since"), reader.now) or "before devlet was started"),
        ]
    )
    for container in documents_at(holder, "status", "containers"):
        yield from section(f"Container {text(container, 'name')}", _container(container))


def _container(container: Document) -> Iterator[str]:
    rows = [
        [text(d, "resource"), ", ".join(in_order(texts(d, "ids"), key=str))] for d in documents_at(container, "devices")
    ]
    yield from section("Devices", table(["RESOURCE", "IDS"], rows))
    options = at(container, "options")
    if isinstance(options, dict):
        yield from container_options.lines(options)
