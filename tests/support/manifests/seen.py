"""What has become of the objects of a manifest, in the words of a file of expectations.

Claims that were made for a pod have names that nobody can know beforehand: they are called POD/ENTRY here, and the one
behind a pod's extended resources POD/extended-resources. So pods need different names, in whatever namespace they are.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from devlet.objects.claims.from_template import ENTRY_ANNOTATION
from devlet.objects.documents import Document

__all__ = ["EXTENDED", "Claim", "Container", "Event", "Pod", "Result", "Rule", "Seen", "container", "seen"]

EXTENDED = "extended-resources"


@dataclass(frozen=True, slots=True)
class Pod:
    phase: str
    node: str = ""
    ended: tuple[str, ...] = ()  # containers that have run and do not any more
    amiss: tuple[str, ...] = ()  # containers that run and are not ready, or have ended and are
    waits: str = field(default="", compare=False)  # what it says it waits for, for people


@dataclass(frozen=True, slots=True)
class Result:
    """A device of a claim, as DRIVER/POOL/DEVICE."""

    request: str
    device: str
    share: str = ""
    consumed: tuple[tuple[str, str], ...] = ()
    admin: bool = False
    awaits: tuple[str, ...] = ()  # binding conditions


@dataclass(frozen=True, slots=True)
class Claim:
    uid: str
    results: tuple[Result, ...] = ()
    reserved: tuple[str, ...] = ()
    spare: bool = False  # was made for a pod that has another one


@dataclass(frozen=True, slots=True)
class Container:
    """What devices bring to it. `more` are the parts of its OCI spec that no expectation has words for."""

    env: tuple[str, ...] = ()
    mounts: tuple[tuple[str, str, tuple[str, ...]], ...] = ()  # path, source, options
    devices: tuple[tuple[str, str], ...] = ()  # path, access
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    about: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Rule:
    """What a DeviceTaintRule says of evictions."""

    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Seen:
    pods: Mapping[str, Pod]
    claims: Mapping[str, Claim]
    containers: Mapping[str, Container]  # by POD/NAME; those without anything from devices are not there
    events: Sequence[Event]
    rules: Mapping[str, Rule]


def seen(
    pods: Sequence[Document],
    claims: Iterable[Document],
    holders: Iterable[Document],
    events: Iterable[Document],
    rules: Iterable[Document],
) -> Seen:
    """`holders` are the view of the node."""
    names = {key: name for each in pods for key, name in _made_for(each)}
    return Seen(
        {_name(each): _pod(each) for each in pods},
        {names.get(_key(each), _name(each)): _claim(each, named=_key(each) in names) for each in claims},
        {
            f"{_name(each)}/{one['name']}": container(one.get("oci", {}))
            for each in holders
            for one in each["status"]["containers"]
        },
        [Event(each["involvedObject"]["name"], each["reason"], each.get("message", "")) for each in events],
        {_name(each): _rule(each) for each in rules},
    )


def _name(document: Document) -> str:
    return str(document["metadata"]["name"])


def _namespace(document: Document) -> str:
    return str(document["metadata"]["namespace"])


def _key(document: Document) -> tuple[str, str]:
    return _namespace(document), _name(document)


def _made_for(pod: Document) -> Iterator[tuple[tuple[str, str], str]]:
    """Namespace and name of each claim that was made for it, and what we call it."""
    status = pod.get("status", {})
    for entry in status.get("resourceClaimStatuses") or ():
        if claim := entry.get("resourceClaimName"):
            yield (_namespace(pod), claim), f"{_name(pod)}/{entry['name']}"
    if extended := status.get("extendedResourceClaimStatus"):
        yield (_namespace(pod), extended["resourceClaimName"]), f"{_name(pod)}/{EXTENDED}"


def _pod(pod: Document) -> Pod:
    status = pod.get("status", {})
    init = status.get("initContainerStatuses") or []
    containers = [*init, *(status.get("containerStatuses") or ()), *(status.get("ephemeralContainerStatuses") or ())]
    ended = tuple(one["name"] for one in containers if "terminated" in one.get("state", {}))
    amiss = tuple(
        one["name"] for one in containers if bool(one.get("ready")) != _should_be_ready(one, init=one in init)
    )
    waits = "; ".join(one["message"] for one in status.get("conditions") or () if one.get("message"))
    return Pod(status.get("phase", ""), pod["spec"].get("nodeName", ""), ended, amiss, waits)


def _should_be_ready(container: Document, *, init: bool) -> bool:
    """An init container that has done its part is."""
    state = container.get("state", {})
    return "running" in state or (init and state.get("terminated", {}).get("exitCode") == 0)


def _claim(claim: Document, *, named: bool) -> Claim:
    status = claim.get("status") or {}
    results = (status.get("allocation") or {}).get("devices", {}).get("results") or ()
    reserved = sorted(each["name"] for each in status.get("reservedFor") or ())
    spare = not named and ENTRY_ANNOTATION in claim["metadata"].get("annotations", {})
    return Claim(claim["metadata"]["uid"], tuple(map(_result, results)), tuple(reserved), spare)


def _result(result: Document) -> Result:
    return Result(
        result["request"],
        f"{result['driver']}/{result['pool']}/{result['device']}",
        result.get("shareID", ""),
        tuple(sorted((result.get("consumedCapacity") or {}).items())),
        bool(result.get("adminAccess")),
        tuple(result.get("bindingConditions") or ()),
    )


def container(oci: Document) -> Container:
    """Of the part of an OCI spec that devices bring."""
    linux = oci.get("linux", {})
    nodes, cgroup = linux.get("devices", []), linux.get("resources", {}).get("devices", [])
    return Container(
        tuple(sorted(oci.get("process", {}).get("env", []))),
        tuple((m["destination"], m["source"], tuple(m.get("options", []))) for m in oci.get("mounts", [])),
        tuple((node["path"], _access(node, cgroup)) for node in nodes),
        tuple(_others(oci)),
    )


def _access(node: Document, rules: Sequence[Document]) -> str:
    device = [node.get(key) for key in ("type", "major", "minor")]
    found = [rule["access"] for rule in rules if [rule.get(key) for key in ("type", "major", "minor")] == device]
    return str(found[-1]) if found else ""


_TOLD = {("process", "env"), ("mounts",), ("linux", "devices"), ("linux", "resources", "devices")}


def _others(value: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The paths of what is in none of the fields of a container."""
    if path in _TOLD or value in ({}, [], None, ""):
        return
    if not isinstance(value, dict):
        yield f"{'.'.join(path)}={value}"
        return
    for key, inner in value.items():
        yield from _others(inner, (*path, key))


def _rule(rule: Document) -> Rule:
    conditions = rule.get("status", {}).get("conditions") or ()
    found: Document = next((each for each in conditions if each["type"] == "EvictionInProgress"), {})
    return Rule(*(found.get(key, "") for key in ("status", "reason", "message")))
