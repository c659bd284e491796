"""A resource slice: the devices a driver publishes, and which claims hold them."""

from collections.abc import Iterator
from typing import Any

from devlet.cli.session import Document
from devlet.cli.views.claim import CLAIMS, devices
from devlet.cli.views.reader import Reader
from devlet.cli.views.sheet import fields, section, table
from devlet.serve.kube_api.table_cells import at, documents_at, text


def view(slice_: Document, reader: Reader) -> Iterator[str]:
    driver, pool = text(slice_, "spec", "driver"), text(slice_, "spec", "pool", "name")
    generation, slices = (at(slice_, "spec", "pool", key) for key in ("generation", "resourceSliceCount"))
    about = f"{pool} (generation {generation}, slices: {slices})"
    yield from fields([("Driver", driver), ("Pool", about), ("Node", node(slice_))])
    held = holders(reader.all(CLAIMS))
    rows = []
    for device in documents_at(slice_, "spec", "devices"):
        about_it = at(device, "basic") or device  # before v1beta2 they are one level down
        name = text(device, "name")
        users = ", ".join(held.get((driver, pool, name), []))
        rows.append([name, users, _attributes(about_it), _capacity(about_it), _taints(about_it)])
    yield from section("Devices", table(["NAME", "CLAIMS", "ATTRIBUTES", "CAPACITY", "TAINTS"], rows))


def node(slice_: Document) -> str:
    if at(slice_, "spec", "allNodes"):
        return "all"
    if at(slice_, "spec", "perDeviceNodeSelection"):
        return "per device"
    return text(slice_, "spec", "nodeName") or "by selector"


def holders(claims: list[Document]) -> dict[tuple[str, str, str], list[str]]:
    """(driver, pool, device) → the claims that have it."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for claim in claims:
        name = f"{text(claim, 'metadata', 'namespace')}/{text(claim, 'metadata', 'name')}"
        for device in devices(claim):
            found.setdefault((device["driver"], device["pool"], device["device"]), []).append(name)
    return found


def _attributes(device: Document) -> str:
    return _joined({name: next(iter(value.values()), "") for name, value in _maps(device, "attributes")})


def _capacity(device: Document) -> str:
    return _joined({name: value.get("value", "") for name, value in _maps(device, "capacity")})


def _taints(device: Document) -> str:
    return ", ".join(f"{text(t, 'key')}={text(t, 'value')}:{text(t, 'effect')}" for t in documents_at(device, "taints"))


def _maps(device: Document, key: str) -> list[tuple[str, dict[str, Any]]]:
    values = at(device, key)
    return [(k, v) for k, v in values.items() if isinstance(v, dict)] if isinstance(values, dict) else []


def _joined(values: dict[str, Any]) -> str:
    return ", ".join(f"{key}={_text(values[key])}" for key in sorted(values))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
