"""What the audience of the tour sees: the objects as the watches told them, the last events, and notes.

Everything on the board came through a watch, nothing from the hand that wrote it; so what it shows is true.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from anyio import Event

from devlet.cluster.client import EventType, WatchEvent
from devlet.objects.documents import Document

Row = tuple[str, ...]

_LAST_EVENTS = 8


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    columns: Row
    rows: list[Row]


class Board:
    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.notes: list[str] = []
        self._changed = changed
        self._objects: dict[str, dict[tuple[str, str], Document]] = {}
        self._events: deque[Row] = deque(maxlen=_LAST_EVENTS)
        self._versions: dict[str, int] = {}
        self._seen = Event()

    def note(self, text: str) -> None:
        self.notes.append(text)
        self._changed()

    def see(self, event: WatchEvent) -> None:
        metadata, kind = event.object["metadata"], event.object["kind"]
        key = (metadata.get("namespace", ""), metadata["name"])
        objects = self._objects.setdefault(kind, {})
        if event.type is EventType.DELETED:
            objects.pop(key, None)
        else:
            objects[key] = event.object
        self._versions[kind] = int(metadata["resourceVersion"])
        self._events.append((event.type, kind, _full_name(event.object), metadata["resourceVersion"]))
        self._seen.set()
        self._seen = Event()
        self._changed()

    async def reached(self, kind: str, version: int) -> None:
        """Wait until this change, or a later one of the kind, has been seen."""
        while self.version(kind) < version:
            await self._seen.wait()

    def version(self, kind: str) -> int:
        """The version of the last change of this kind that was seen; 0: none."""
        return self._versions.get(kind, 0)

    def count(self) -> int:
        return sum(len(objects) for objects in self._objects.values())

    def tables(self) -> list[Table]:
        return [
            Table("Devices", ("SLICE", "DRIVER", "POOL", "DEVICE", "MODEL", "MEMORY"), list(self._devices())),
            Table("Resource claims", ("NAMESPACE", "NAME", "STATE", "REQUESTS"), list(self._claims())),
            Table("Pods", ("NAMESPACE", "NAME", "PHASE", "CLAIMS"), list(self._pods())),
            Table("Last watch events", ("TYPE", "KIND", "NAME", "VERSION"), list(self._events)),
        ]

    def _devices(self) -> Iterable[Row]:
        for slice_ in self._of("ResourceSlice"):
            spec = slice_["spec"]
            for device in spec.get("devices", ()):
                model = device["attributes"]["model"]["string"]
                memory = device["capacity"]["memory"]["value"]
                yield slice_["metadata"]["name"], spec["driver"], spec["pool"]["name"], device["name"], model, memory

    def _claims(self) -> Iterable[Row]:
        for claim in self._of("ResourceClaim"):
            requests = ", ".join(
                f"{request['name']}: {request['exactly'].get('count', 1)} × {request['exactly']['deviceClassName']}"
                for request in claim["spec"]["devices"]["requests"]
            )
            yield claim["metadata"]["namespace"], claim["metadata"]["name"], _state(claim), requests

    def _pods(self) -> Iterable[Row]:
        for pod in self._of("Pod"):
            wants = ", ".join(
                claim.get("resourceClaimName") or f"from template {claim['resourceClaimTemplateName']}"
                for claim in pod["spec"].get("resourceClaims", ())
            )
            yield pod["metadata"]["namespace"], pod["metadata"]["name"], pod["status"]["phase"], wants

    def _of(self, kind: str) -> list[Document]:
        return [document for _, document in sorted(self._objects.get(kind, {}).items())]


def _full_name(document: Document) -> str:
    metadata = document["metadata"]
    return "/".join(part for part in (metadata.get("namespace"), metadata["name"]) if part)


def _state(claim: Document) -> str:
    """In kubectl's words."""
    status = claim.get("status") or {}
    if not status.get("allocation"):
        return "pending"
    return "allocated,reserved" if status.get("reservedFor") else "allocated"
