"""The row of a claim in a table: its state in the cluster and on this node."""

from datetime import datetime

from devlet.cli.session import Document
from devlet.cli.views.awaited import States, awaits, awaits_since, consumers
from devlet.cli.views.claim import devices, nodes, state
from devlet.node.devices.order import in_order
from devlet.objects.subdocuments import name, text
from devlet.objects.table_cells import AGE, NAME, NONE, UNKNOWN, Column, age, none_if_empty, since

COLUMNS = (
    NAME,
    *(Column(title) for title in ("State", "Devices", "Node", "Consumers", "Prepared", "Awaits", "Since")),
    AGE,
)
SHOWN = 3  # devices, or consumers
LONGEST = 60  # characters of what is awaited

GONE = "gone"  # prepared here, but no longer in the cluster
ABSENT = "missing"  # a pod here waits for it, and it was not there yet


def cells(
    claim: Document | None,
    prepared: Document | None,
    drivers: States | None,
    *,
    now: datetime,
    on_node: bool,
    wide: bool,
) -> list[str]:
    """Return the cells. Either `claim` or `prepared` may be None; `on_node` means that prepared claims are known."""
    awaited = awaits(claim, prepared, drivers)
    moment = awaits_since(claim, prepared) if awaited or prepared else None
    return [
        name(claim or prepared or {}),
        state(claim) if claim else GONE if text(prepared or {}, "spec", "uid") else ABSENT,
        none_if_empty(_devices(claim or {}, wide=wide)),
        none_if_empty(nodes(claim or {})),
        none_if_empty(_some(consumers(claim or {}), wide=wide)),
        none_if_empty(text(prepared or {}, "status", "state")) if on_node else UNKNOWN,
        none_if_empty(awaited if wide else _short(awaited)),
        since(moment, now) if moment else NONE,
        age(claim or {}, now),
    ]


def _devices(claim: Document, *, wide: bool) -> str:
    """Return devices as `driver/pool/device`, shortened to `device` if driver and pool are those of the one before."""
    found = dict.fromkeys((d["driver"], d["pool"], d["device"]) for d in devices(claim))
    if wide:
        return ",".join("/".join(device) for device in found)
    ordered = in_order(list(found), key=lambda device: device[2])
    ordered.sort(key=lambda device: device[:2])
    shown = []
    for before, device in zip([None, *ordered], ordered[:SHOWN], strict=False):
        shown.append(device[2] if before and before[:2] == device[:2] else "/".join(device))
    return ",".join(shown) + _more(len(ordered))


def _some(names: list[str], *, wide: bool) -> str:
    return ",".join(names) if wide else ",".join(names[:SHOWN]) + _more(len(names))


def _more(count: int) -> str:
    return f" + {count - SHOWN} more..." if count > SHOWN else ""


def _short(words: str) -> str:
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 3].rstrip()}..."
