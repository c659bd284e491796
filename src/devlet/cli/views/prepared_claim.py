"""A claim on this node: what each driver has prepared, with the CDI devices, and which pods use or await it."""

from collections.abc import Iterator

from devlet.cli.session import Document
from devlet.cli.views.awaited import awaits, awaits_since, driver_states
from devlet.cli.views.reader import Reader
from devlet.cli.views.sheet import fields, moment, section, table
from devlet.serve.kube_api.table_cells import at, documents_at, text, texts

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
    yield from lines(claim, prepared, reader)


def lines(claim: Document | None, prepared: Document, reader: Reader) -> Iterator[str]:
    """For the claim itself as well."""
    states = driver_states(reader.all(DRIVERS))
    awaited = awaits(claim, prepared, states)
    since = at(prepared, "status", "since")
    yield from fields(
        [
            ("Prepared", text(prepared, "status", "state")),
            ("Since", moment(since, reader.now) or "before devlet was started"),
            ("Awaits", awaited),
        ]
    )
    if awaited:
        yield from fields([("Awaited since", moment(awaits_since(claim, prepared), reader.now))])
    yield from fields([("Last error", text(prepared, "status", "message"))])
    yield from section(
        "On this node", table(["DRIVER", "PREPARED", "DEVICE", "REQUESTS", "CDI DEVICES"], _rows(prepared, states))
    )
    pods = [[text(pod, "name"), text(pod, "uid")] for pod in documents_at(prepared, "status", "pods")]
    yield from section("Pods", table(["NAME", "UID"], pods))
    waiting = [
        [text(wait, "pod"), moment(at(wait, "since"), reader.now), text(wait, "message")]
        for wait in documents_at(prepared, "status", "waiting")
    ]
    yield from section("Waiting", table(["POD", "SINCE", "MESSAGE"], waiting))


def _rows(prepared: Document, states: dict[str, str]) -> list[list[str]]:
    """One for each device, and one for a driver that has prepared none."""
    rows = []
    for part in documents_at(prepared, "status", "drivers"):
        driver = text(part, "driver")
        done = "yes" if at(part, "prepared") is True else f"no ({states.get(driver, 'Missing')})"
        rows += [[driver, done, *_device(device)] for device in documents_at(part, "devices")] or [[driver, done, "", "", ""]]
    return rows


def _device(device: Document) -> list[str]:
    share = text(device, "shareID")
    place = "/".join(filter(None, (text(device, "pool"), text(device, "device"))))
    requests = ", ".join(texts(device, "requests")) or "all"
    return [f"{place} (share {share})" if share else place, requests, ", ".join(texts(device, "cdiDevices"))]
