"""The state that the demo shows: devices and the pods that hold them, claims, pods, events and notes.

All objects come from the API, through watches and the node's own views. The code that creates the objects does not
write to the board, so the board shows what really happened.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from devlet.cluster.informer import Changed
from devlet.kit.changes import Changes
from devlet.objects.documents import Document
from devlet.objects.identifiers import ObjectKey

Row = tuple[str, ...]

_LAST_EVENTS = 6


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    columns: Row
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A command that the user can run in another terminal, and what it is good for."""

    purpose: str
    command: str


class Board:
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.suggestions: Sequence[Suggestion] = ()
        self.changes = Changes()  # of anything on the board
        self.object_changes = Changes()  # of objects that are watched
        self._objects: dict[str, dict[ObjectKey, Document]] = {}
        self._devices: Sequence[Document] = ()
        self._holders: dict[str, Document] = {}  # by pod

    # Input

    def note(self, text: str) -> None:
        self.notes.append(text)
        self.changes.notify()

    def suggest(self, suggestions: Sequence[Suggestion]) -> None:
        """Replace the suggested commands."""
        self.suggestions = suggestions
        self.changes.notify()

    def see(self, kind: str, change: Changed[Document]) -> None:
        """Record a change that a watch reported."""
        objects = self._objects.setdefault(kind, {})
        objects.pop(change.key, None)  # so that the newest is the last
        if change.new is not None:
            objects[change.key] = change.new
        self.object_changes.notify()
        self.changes.notify()

    def hold(self, devices: Sequence[Document], holders: Sequence[Document]) -> None:
        """Record the node's views of the plugins' devices and of the pods that hold devices."""
        self._devices = devices
        self._holders = {holder["metadata"]["name"]: holder for holder in holders}
        self.changes.notify()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until the condition, which looks at this board, is true."""
        while not condition():
            await self.changes.next()

    # Questions

    def phase(self, pod: str) -> str:
        """Return the phase of the pod, or an empty string if there is no such pod."""
        return next((p["status"]["phase"] for p in self._of("Pod") if p["metadata"]["name"] == pod), "")

    def held_by(self, pod: str) -> list[str]:
        """Return the devices that the pod has, from device plugins and from claims."""
        return [device for _, device in _held(self._holders.get(pod))]

    def why_pending(self, pod: str) -> str:
        """Return the message of the last event about the failed scheduling of the pod; empty if there is none."""
        for event in reversed(self._objects.get("Event", {}).values()):
            if event["reason"] == "FailedScheduling" and event["involvedObject"]["name"] == pod:
                return str(event["message"])
        return ""

    def is_offered(self, resource: str, count: int) -> bool:
        """Return True if the node has this number of the resource allocatable."""
        return any(node["status"].get("allocatable", {}).get(resource) == str(count) for node in self._of("Node"))

    def is_published(self, *devices: str) -> bool:
        """Return True if all these devices are in resource slices."""
        return set(devices) <= {device["name"] for _, device in self._published()}

    # Output

    def tables(self) -> list[Table]:
        return [
            Table("Devices", ("NODE", "DRIVER", "DEVICE", "MODEL", "HELD BY"), list(self._device_rows())),
            Table("Resource claims", ("NAME", "STATE", "DEVICE", "RESERVED FOR"), list(self._claim_rows())),
            Table("Pods", ("NAME", "PHASE", "NODE", "ASKS FOR", "GETS"), list(self._pod_rows())),
            Table("Last events", ("REASON", "OBJECT", "MESSAGE"), list(self._event_rows())),
        ]

    def _device_rows(self) -> Iterator[Row]:
        node = next((node["metadata"]["name"] for node in self._of("Node")), "")
        for device in self._devices:
            if "resource" not in device["spec"]:  # a DRA driver's device: it comes from the slices below
                continue
            resource, name = device["spec"]["resource"], device["spec"]["id"]
            yield node, resource, name, f"device plugin, {device['status']['health']}", self._holders_of(resource, name)
        for slice_, device in self._published():
            driver, memory = slice_["spec"]["driver"], device["capacity"]["memory"]["value"]
            model = f"{device['attributes']['model']['string']}, {memory}"
            held_by = self._holders_of(driver, device["name"])
            yield slice_["spec"]["nodeName"], driver, device["name"], model, held_by

    def _claim_rows(self) -> Iterator[Row]:
        for claim in self._of("ResourceClaim"):
            status = claim.get("status") or {}
            results = status.get("allocation", {}).get("devices", {}).get("results", ())
            devices = _listed(result["device"] for result in results)
            pods = _listed(sorted(consumer["name"] for consumer in status.get("reservedFor", ())))
            yield claim["metadata"]["name"], _state(status), devices, pods

    def _pod_rows(self) -> Iterator[Row]:
        for pod in self._of("Pod"):
            name, node = pod["metadata"]["name"], pod["spec"].get("nodeName", "–")
            yield (
                name,
                pod["status"]["phase"],
                node,
                _listed(_requested(pod)),
                _listed(_received(self._holders.get(name))),
            )

    def _event_rows(self) -> list[Row]:
        events = list(self._objects.get("Event", {}).values())[-_LAST_EVENTS:]
        return [(event["reason"], _subject(event["involvedObject"]), event["message"]) for event in events]

    def _published(self) -> Iterator[tuple[Document, Document]]:
        """Yield each published device with its slice."""
        for slice_ in self._of("ResourceSlice"):
            for device in slice_["spec"].get("devices", ()):
                yield slice_, device

    def _holders_of(self, driver: str, device: str) -> str:
        return _listed(pod for pod, holder in sorted(self._holders.items()) if (driver, device) in _held(holder))

    def _of(self, kind: str) -> list[Document]:
        return [document for _, document in sorted(self._objects.get(kind, {}).items(), key=lambda item: item[0])]


def _held(holder: Document | None) -> Iterator[tuple[str, str]]:
    """Yield the driver (or, for a device plugin, the resource) and the name of each device."""
    for container in holder["status"]["containers"] if holder else ():
        for held in container.get("devices", ()):
            yield from ((held["resource"], id) for id in held["ids"])
        for claimed in container.get("claims", ()):
            if "device" in claimed:
                yield claimed["driver"], claimed["device"]


def _received(holder: Document | None) -> Iterator[str]:
    """Yield the environment variables that come with the devices."""
    for container in holder["status"]["containers"] if holder else ():
        yield from container.get("oci", {}).get("process", {}).get("env", ())


def _requested(pod: Document) -> Iterator[str]:
    for container in pod["spec"]["containers"]:
        for resource, count in container.get("resources", {}).get("limits", {}).items():
            yield f"{count} {resource}"
    for claim in pod["spec"].get("resourceClaims", ()):
        yield claim.get("resourceClaimName") or f"template {claim['resourceClaimTemplateName']}"


def _state(status: Document) -> str:
    """Return the state as kubectl prints it."""
    if not status.get("allocation"):
        return "pending"
    return "allocated,reserved" if status.get("reservedFor") else "allocated"


def _subject(reference: Document) -> str:
    return f"{reference['kind'].lower()}/{reference['name']}"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words) or "–"
