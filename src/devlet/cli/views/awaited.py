"""What a claim waits for, in a few words, and since when.

This follows from three objects: the claim shows what the cluster has yet to do, the node's view of it what this node
has yet to do, and the node's drivers whether they are there to do it. Each of them may be missing or unreadable."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from devlet.cli.session import Document
from devlet.objects.subdocuments import at, mappings, text, texts

States = Mapping[str, str]

_ABSENT = {"Missing": "not registered", "Disconnected": "disconnected"}
_FINAL = "Prepared"


def driver_states(drivers: Iterable[Document]) -> dict[str, str]:
    """Return the state by driver name. Of several instances, the one in use has the shortest name and counts."""
    found: dict[str, str] = {}
    for driver in sorted(drivers, key=lambda driver: len(text(driver, "metadata", "name"))):
        found.setdefault(text(driver, "spec", "driver"), text(driver, "status", "state"))
    return found


def awaits(claim: Document | None, prepared: Document | None, drivers: States | None) -> str:
    """Return what the claim waits for, or an empty string. `claim` is None if the cluster does not have it, and
    `drivers` if they are unknown."""
    if claim is None:
        return _here(None, prepared, drivers)
    users = consumers(claim)
    if at(claim, "metadata", "deletionTimestamp"):
        return f"end of {_pods(users)}" if users else _here(claim, prepared, drivers) or _finalizer(claim)
    if at(claim, "status", "allocation") is None:
        return "allocation"
    if unreserved := list(_unreserved(claim, prepared)):
        return f"reservation for {_pods(unreserved)}"
    return _here(claim, prepared, drivers)


def awaits_since(claim: Document | None, prepared: Document | None) -> Any:
    """Return when the first pod began to wait, or else when the claim entered its state or was created."""
    waiting = [text(wait, "since") for wait in _waiting(prepared) if text(wait, "since")]
    if waiting:
        return min(waiting)
    if since := at(prepared, "status", "since"):
        return since
    if claim is not None and at(claim, "status", "allocation") is None:
        return at(claim, "metadata", "creationTimestamp")
    return None


def consumers(claim: Document) -> list[str]:
    """Return the consumers for which the claim is reserved; pods by name alone."""
    users = mappings(claim, "status", "reservedFor")
    return [
        text(u, "name") if text(u, "resource") == "pods" else f"{text(u, 'resource')}/{text(u, 'name')}" for u in users
    ]


def _here(claim: Document | None, prepared: Document | None, drivers: States | None) -> str:
    """Return what this node has yet to do."""
    state = text(prepared or {}, "status", "state")
    waiting = _waiting(prepared)
    if state in ("", _FINAL) and not waiting:
        return ""
    involved = list(_involved(claim, prepared))
    for driver in involved:
        if drivers is not None and (why := _ABSENT.get(drivers.get(driver, "Missing"))):
            return f"driver {driver} ({why})"
    if message := text(prepared or {}, "status", "message") or next((text(w, "message") for w in waiting), ""):
        return message
    who = f"driver {','.join(involved)}" if involved else "its driver"
    return f"{who} to unprepare it" if state == "Unpreparing" else f"{who} to prepare it"


def _involved(claim: Document | None, prepared: Document | None) -> Iterator[str]:
    """Yield the drivers that are awaited: all of them to unprepare the claim, or those that have not prepared it."""
    parts = mappings(prepared or {}, "status", "drivers")
    unpreparing = text(prepared or {}, "status", "state") == "Unpreparing"
    if parts:
        yield from (text(part, "driver") for part in parts if unpreparing or at(part, "prepared") is not True)
    else:
        results = mappings(claim or {}, "status", "allocation", "devices", "results")
        yield from dict.fromkeys(text(result, "driver") for result in results)


def _unreserved(claim: Document, prepared: Document | None) -> Iterator[str]:
    reserved = {text(user, "uid") for user in mappings(claim, "status", "reservedFor")}
    for wait in _waiting(prepared):
        if text(wait, "uid") not in reserved:
            yield text(wait, "pod") or text(wait, "uid")


def _waiting(prepared: Document | None) -> list[Document]:
    return mappings(prepared or {}, "status", "waiting")


def _finalizer(claim: Document) -> str:
    names = texts(claim, "metadata", "finalizers")
    return f"finalizer {names[0]}" if names else ""


def _pods(names: list[str]) -> str:
    return f"pod {names[0]}" if len(names) == 1 else f"pods {','.join(names)}"
