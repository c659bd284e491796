"""A claim on this node: the devices that each driver has prepared, and the pods that use or await the claim."""

from collections.abc import Iterator

from devlet.cli.session import Document
from devlet.cli.views.awaited import awaits, awaits_since, driver_states
from devlet.cli.views.reader import Reader
from devlet.cli.views.sheet import fields, moment, section, table
from devlet.objects.subdocuments import at, mappings, text, texts

PREPARED = "preparedclaims.devlet.dev"
DRIVERS = "drivers.devlet.dev"
CLAIMS = "resourceclaims.resource.k8s.io"


def view(prepared: Document, reader: Reader) -> Iterator[str]:
    name, namespace = (text(prepared, "metadata", key) for key in ("name", "namespace"))
    claim = reader.one(CLAIMS, namespace, name)
    uid = text(prepared, "spec", "uid")
    if claim is not None and uid not in ("", text(claim, "metadata", "uid")):
        claim = None
    yield from fields([("Claim UID", uid), ("Claim", "in the cluster" if claim else "not in the cluster")])
    yield from summary(claim, prepared, reader)
    yield from details(prepared, reader)


def summary(claim: Document | None, prepared: Document | None, reader: Reader) -> Iterator[str]:
    """Yield the fields that the description of the claim itself has as well. `prepared` is None if it is unknown."""
    awaited = awaits(claim, prepared, driver_states(reader.all(DRIVERS)) if prepared else None)
    since = moment(awaits_since(claim, prepared), reader.now) if awaited else None
    yield from fields(
        [("Prepared", _state(prepared, reader)), ("Awaits", f"{awaited}, since {since}" if since else awaited)]
    )
    if prepared is not None:
        yield from fields([("Last error", text(prepared, "status", "message"))])


def details(prepared: Document, reader: Reader) -> Iterator[str]:
    states = driver_states(reader.all(DRIVERS))
    header = ["DRIVER", "PREPARED", "DEVICE", "REQUESTS", "CDI DEVICES"]
    yield from section("On this node", table(header, _rows(prepared, states)))
    pods = [[text(pod, "name"), text(pod, "uid")] for pod in mappings(prepared, "status", "pods")]
    yield from section("Pods", table(["NAME", "UID"], pods))
    waiting = [
        [text(wait, "pod"), text(wait, "uid"), moment(at(wait, "since"), reader.now), text(wait, "message")]
        for wait in mappings(prepared, "status", "waiting")
    ]
    yield from section("Waiting", table(["POD", "UID", "SINCE", "MESSAGE"], waiting))


def _state(prepared: Document | None, reader: Reader) -> str:
    if prepared is None:
        return "not on this node" if reader.is_node else "<unknown>: ask the devlet on the claim's node"
    since = moment(at(prepared, "status", "since"), reader.now)
    return f"{text(prepared, 'status', 'state')}, since {since or 'before devlet started'}"


def _rows(prepared: Document, states: dict[str, str]) -> list[list[str]]:
    """Return a row for each device, and for each driver that has prepared none."""
    rows = []
    for part in mappings(prepared, "status", "drivers"):
        driver = text(part, "driver")
        done = "yes" if at(part, "prepared") is True else f"no ({states.get(driver, 'Missing')})"
        rows += [[driver, done, *_device(device)] for device in mappings(part, "devices")] or [
            [driver, done, "", "", ""]
        ]
    return rows


def _device(device: Document) -> list[str]:
    share = text(device, "shareID")
    place = "/".join(filter(None, (text(device, "pool"), text(device, "device"))))
    requests = ", ".join(texts(device, "requests")) or "all"
    return [f"{place} (share {share})" if share else place, requests, ", ".join(texts(device, "cdiDevices"))]
