"""A pod that holds devices: those of each container, from plugins and claims, and what came with them."""

from collections.abc import Iterator

from devlet.cli.session import Document
from devlet.cli.views import container_spec
from devlet.cli.views.reader import Reader
from devlet.cli.views.sheet import fields, moment, section, table
from devlet.node.devices.order import in_order
from devlet.objects.subdocuments import at, mappings, text, texts


def view(holder: Document, reader: Reader) -> Iterator[str]:
    containers = mappings(holder, "status", "containers")
    pairs = [("Pod UID", text(holder, "spec", "podUID")), ("Phase", text(holder, "status", "phase"))]
    since = moment(at(holder, "status", "since"), reader.now)
    # The time is known only for devices of plugins.
    if since or not containers or any(mappings(container, "devices") for container in containers):
        pairs.append(("Since", since or "before devlet started"))
    yield from fields(pairs)
    for container in containers:
        yield from section(f"Container {text(container, 'name')}", _container(container))


def _container(container: Document) -> Iterator[str]:
    rows = [
        [text(d, "resource"), ", ".join(in_order(texts(d, "ids"), key=str))] for d in mappings(container, "devices")
    ]
    claims = [_claim(claim) for claim in mappings(container, "claims")]
    if rows or not claims:
        yield from section("Devices", table(["RESOURCE", "IDS"], rows))
    if claims:
        yield from section("Claims", table(["NAME", "CLAIM", "REQUEST", "DEVICE", "SHARE"], claims))
    yield from container_spec.lines(container)


def _claim(claim: Document) -> list[str]:
    """Return the row of a claim. A driver that is listed without a device has not prepared the claim yet."""
    device = "/".join(text(claim, key) for key in ("driver", "pool", "device") if text(claim, key))
    waits = text(claim, "driver") and not text(claim, "device")
    shown = f"{device} (not prepared)" if waits else device
    return [text(claim, "name"), text(claim, "claim"), text(claim, "request") or "all", shown, text(claim, "shareID")]
