"""One line for a resource slice: whose it is, how many devices it has, and how many of them claims hold."""

from datetime import datetime

from devlet.cli.session import Document
from devlet.cli.views.slice import Holders, node
from devlet.objects.subdocuments import mappings, name, number, text
from devlet.objects.table_cells import AGE, NAME, UNKNOWN, Column, age, none_if_empty, wide

COLUMNS = (
    NAME,
    *(Column(title) for title in ("Node", "Driver", "Pool", "Generation", "Devices", "Used")),
    AGE,
    wide("Claims"),
)


def cells(slice_: Document, held: Holders | None, *, now: datetime) -> list[str]:
    """`held` is None if nobody may know who holds what."""
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
