"""A DRA driver: its socket and state, its slices and when they are removed, its claims and the pods that wait."""

from collections.abc import Iterator
from typing import Any

from devlet.cli.session import Document
from devlet.cli.views.prepared_claim import CLAIMS, PREPARED
from devlet.cli.views.reader import Reader
from devlet.cli.views.sheet import fields, moment, section, table
from devlet.cli.views.slice import holders, node
from devlet.node.devices.order import in_order
from devlet.objects.subdocuments import at, mappings, text, texts
from devlet.objects.table_cells import duration, instant

SLICES = "resourceslices.resource.k8s.io"
MOST = 50  # claims; use `devlet get` for more

_MEANING = {
    "Disconnected": "the connection was lost; calls resume as soon as it is back",
    "Standby": "another instance is in use; this one takes over if that one exits",
    "Refused": "registration failed; the driver is registered as soon as an attempt succeeds",
}


def view(driver: Document, reader: Reader) -> Iterator[str]:
    name = text(driver, "spec", "driver")
    yield from fields([("Driver", name), ("State", _state(driver)), ("Message", text(driver, "status", "message"))])
    if text(driver, "spec", "endpoint"):
        yield from fields(_registered(driver, reader))
    if "claims" not in (at(driver, "status") or {}):
        return  # these fields are present only for the instance in use
    yield from fields([("Here", _counts(driver)), ("Slices wiped", _wipe(driver, reader))])
    yield from section("Slices", _slices(name, reader))
    yield from section("Claims", _claims(name, reader))


def _registered(driver: Document, reader: Reader) -> list[tuple[str, Any]]:
    return [
        ("Since", moment(at(driver, "status", "since"), reader.now)),
        ("Registered", moment(at(driver, "status", "registered"), reader.now)),
        ("Endpoint", text(driver, "spec", "endpoint")),
        ("Service", text(driver, "spec", "service")),
        ("Advertised", texts(driver, "spec", "advertised")),
        ("Health", text(driver, "spec", "healthService") or "the driver does not report the health of its devices"),
    ]


def _state(driver: Document) -> str:
    word = text(driver, "status", "state")
    return f"{word}: {_MEANING[word]}" if word in _MEANING else word


def _counts(driver: Document) -> str:
    nouns = {"slices": "slices", "devices": "devices", "claims": "claims in use", "pods": "pods waiting"}
    counts = {words: at(driver, "status", key) for key, words in nouns.items()}
    return ", ".join(f"{count} {words}" for words, count in counts.items() if isinstance(count, int))


def _wipe(driver: Document, reader: Reader) -> str:
    when = at(driver, "status", "wipeAt")
    if (wipe := instant(when)) is None:
        return ""
    left = (wipe - reader.now).total_seconds()
    return f"{when} ({f'in {duration(left)}' if left > 0 else 'now'}, unless the driver comes back)"


def _slices(driver: str, reader: Reader) -> Iterator[str]:
    """Yield the slices of the driver on all nodes of the cluster."""
    slices = reader.all(SLICES, query=[("fieldSelector", f"spec.driver={driver}")])
    held = holders(reader.all(CLAIMS)) if slices else {}
    rows = []
    for slice_ in slices:
        pool, devices = text(slice_, "spec", "pool", "name"), mappings(slice_, "spec", "devices")
        used = sum((driver, pool, text(device, "name")) in held for device in devices)
        name, generation = text(slice_, "metadata", "name"), at(slice_, "spec", "pool", "generation")
        rows.append([name, node(slice_), pool, generation, str(len(devices)), str(used)])
    return table(["NAME", "NODE", "POOL", "GENERATION", "DEVICES", "USED"], rows)


def _claims(driver: str, reader: Reader) -> Iterator[str]:
    found = [p for p in reader.all(PREPARED) if _is_of(driver, p, reader)]
    rows = [_claim(driver, claim) for claim in in_order(found, key=lambda claim: text(claim, "metadata", "name"))]
    yield from table(["CLAIM", "STATE", "PREPARED", "DEVICES", "PODS", "WAITING", "MESSAGE"], rows[:MOST])
    if len(rows) > MOST:
        yield f"and {len(rows) - MOST} more: devlet get claims -A"


def _is_of(driver: str, prepared: Document, reader: Reader) -> bool:
    """Return whether the claim has devices of the driver. Before it is prepared, only the cluster knows this."""
    parts = mappings(prepared, "status", "drivers")
    if not parts:
        namespace, name = (text(prepared, "metadata", key) for key in ("namespace", "name"))
        claim = reader.one(CLAIMS, namespace, name) or {}
        parts = mappings(claim, "status", "allocation", "devices", "results")
    return any(text(part, "driver") == driver for part in parts)


def _claim(driver: str, prepared: Document) -> list[str]:
    parts = [part for part in mappings(prepared, "status", "drivers") if text(part, "driver") == driver]
    devices = [text(device, "device") for part in parts for device in mappings(part, "devices")]
    return [
        f"{text(prepared, 'metadata', 'namespace')}/{text(prepared, 'metadata', 'name')}",
        text(prepared, "status", "state"),
        "yes" if parts and all(at(part, "prepared") is True for part in parts) else "no",
        ", ".join(dict.fromkeys(devices)),
        ", ".join(text(pod, "name") or text(pod, "uid") for pod in mappings(prepared, "status", "pods")),
        ", ".join(text(wait, "pod") or text(wait, "uid") for wait in mappings(prepared, "status", "waiting")),
        text(prepared, "status", "message"),
    ]
