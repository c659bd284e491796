"""A resource slice: the devices that a driver publishes, and the claims and pods that hold them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from devlet.cli.session import Document
from devlet.cli.views.awaited import consumers
from devlet.cli.views.claim import CLAIMS
from devlet.cli.views.reader import Reader
from devlet.cli.views.sheet import fields, section, table
from devlet.objects.subdocuments import at, mappings, name, number, text
from devlet.objects.table_cells import AGE, NAME, UNKNOWN, Column, age, none_if_empty, wide

COLUMNS = (
    NAME,
    *(Column(title) for title in ("Node", "Driver", "Pool", "Generation", "Devices", "Used")),
    AGE,
    wide("Claims"),
)


class Holder(NamedTuple):
    """A claim, with its namespace, and the pods that use it."""

    claim: str
    consumers: list[str]


Holders = Mapping[tuple[str, str, str], Sequence[Holder]]


def view(slice_: Document, reader: Reader) -> Iterator[str]:
    driver, pool = text(slice_, "spec", "driver"), text(slice_, "spec", "pool", "name")
    generation, slices = (at(slice_, "spec", "pool", key) for key in ("generation", "resourceSliceCount"))
    about = f"{pool} (generation {generation}, slices: {slices})"
    held = holders(reader.all(CLAIMS))
    devices = mappings(slice_, "spec", "devices")
    used = sum((driver, pool, text(device, "name")) in held for device in devices)
    yield from fields(
        [("Driver", driver), ("Pool", about), ("Node", node(slice_)), ("Used", f"{used} of {len(devices)}")]
    )
    rows = []
    for device in devices:
        about_it = at(device, "basic") or device  # before v1beta2 they are one level down
        device_name = text(device, "name")
        found = held.get((driver, pool, device_name), ())
        claims, pods = (", ".join(dict.fromkeys(each)) for each in _columns(found))
        rows.append([device_name, claims, pods, _attributes(about_it), _capacity(about_it), _taints(about_it)])
    yield from section("Devices", table(["NAME", "CLAIMS", "USED BY", "ATTRIBUTES", "CAPACITY", "TAINTS"], rows))


def cells(slice_: Document, held: Holders | None, *, now: datetime) -> list[str]:
    """Return the row of a slice in a table. `held` is None if the claims cannot be read."""
    driver, pool = text(slice_, "spec", "driver"), text(slice_, "spec", "pool", "name")
    devices = [text(device, "name") for device in mappings(slice_, "spec", "devices")]
    holders = [found for device in devices if (found := (held or {}).get((driver, pool, device)))]
    claims = dict.fromkeys(holder.claim for found in holders for holder in found)
    return [
        name(slice_),
        node(slice_),
        driver,
        pool,
        str(number(slice_, "spec", "pool", "generation")),
        str(len(devices)),
        UNKNOWN if held is None else str(len(holders)),
        age(slice_, now),
        UNKNOWN if held is None else none_if_empty(",".join(claims)),
    ]


def node(slice_: Document) -> str:
    if at(slice_, "spec", "allNodes"):
        return "all"
    if at(slice_, "spec", "perDeviceNodeSelection"):
        return "per device"
    return text(slice_, "spec", "nodeName") or "by selector"


def holders(claims: list[Document]) -> Holders:
    """Map (driver, pool, device) to the claims that hold it. Claims with admin access hold nothing."""
    found: dict[tuple[str, str, str], list[Holder]] = {}
    for claim in claims:
        holder = Holder(f"{text(claim, 'metadata', 'namespace')}/{text(claim, 'metadata', 'name')}", consumers(claim))
        for result in mappings(claim, "status", "allocation", "devices", "results"):
            if at(result, "adminAccess") is not True:
                place = text(result, "driver"), text(result, "pool"), text(result, "device")
                found.setdefault(place, []).append(holder)
    return found


def _columns(holders: Sequence[Holder]) -> tuple[list[str], list[str]]:
    return [holder.claim for holder in holders], [user for holder in holders for user in holder.consumers]


def _attributes(device: Document) -> str:
    return _joined({key: next(iter(value.values()), "") for key, value in _maps(device, "attributes")})


def _capacity(device: Document) -> str:
    return _joined({key: value.get("value", "") for key, value in _maps(device, "capacity")})


def _taints(device: Document) -> str:
    return ", ".join(f"{text(t, 'key')}={text(t, 'value')}:{text(t, 'effect')}" for t in mappings(device, "taints"))


def _maps(device: Document, key: str) -> list[tuple[str, dict[str, Any]]]:
    values = at(device, key)
    return [(k, v) for k, v in values.items() if isinstance(v, dict)] if isinstance(values, dict) else []


def _joined(values: dict[str, Any]) -> str:
    return ", ".join(f"{key}={_text(values[key])}" for key in sorted(values))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
