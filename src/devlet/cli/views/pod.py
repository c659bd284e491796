"""A pod: its node, status and containers, and the devices that it has from plugins and through claims."""

from collections.abc import Iterator

from devlet.cli.session import Document
from devlet.cli.views import claim as claims
from devlet.cli.views import container_spec
from devlet.cli.views.device import HOLDERS
from devlet.cli.views.reader import Reader
from devlet.cli.views.sheet import amounts, conditions, fields, section, table
from devlet.objects.subdocuments import at, mappings, number, text


def view(pod: Document, reader: Reader) -> Iterator[str]:
    status = ": ".join(part for part in (text(pod, "status", "phase"), text(pod, "status", "reason")) if part)
    pairs = [("Node", text(pod, "spec", "nodeName")), ("Status", status)]
    pairs += [("Message", message)] if (message := text(pod, "status", "message")) else []
    yield from fields([*pairs, ("IP", text(pod, "status", "podIP"))])
    if mappings(pod, "spec", "initContainers"):
        yield from section("Init containers", _containers(pod, "initContainers", "initContainerStatuses"))
    yield from section("Containers", _containers(pod, "containers", "containerStatuses"))
    if devices := [*_devices(pod)]:
        yield from section("Devices", table(["CONTAINER", "RESOURCE", "DEVICES"], devices))
    yield from section("Claims", table(["NAME", "CLAIM", "STATE", "DEVICES"], [*_claims(pod, reader)]))
    yield from _given(pod, reader)
    yield from conditions(pod)


def _given(pod: Document, reader: Reader) -> Iterator[str]:
    """Describe what containers got with their devices, which only the devlet of the node knows."""
    holder = reader.one(HOLDERS, text(pod, "metadata", "namespace"), text(pod, "metadata", "name"))
    for container in mappings(holder or {}, "status", "containers"):
        if lines := [*container_spec.lines(container)]:
            yield from section(f"Given to container {text(container, 'name')}", lines)


def _containers(pod: Document, key: str, status_key: str) -> Iterator[str]:
    statuses = {text(s, "name"): s for s in mappings(pod, "status", status_key)}
    rows = []
    for container in mappings(pod, "spec", key):
        status = statuses.get(text(container, "name"), {})
        used = ", ".join(
            "/".join(part for part in (text(c, "name"), text(c, "request")) if part)
            for c in mappings(container, "resources", "claims")
        )
        limits = amounts(at(container, "resources", "limits"))
        restarts = str(number(status, "restartCount"))
        rows.append([text(container, "name"), text(container, "image"), _state(status), restarts, limits, used])
    return table(["NAME", "IMAGE", "STATE", "RESTARTS", "LIMITS", "CLAIMS"], rows)


def _state(status: Document) -> str:
    state = at(status, "state")
    if not isinstance(state, dict) or not state:
        return ""
    word, details = next(iter(state.items()))
    why = text(details, "reason") if isinstance(details, dict) else ""
    return f"{word} ({why})" if why else word


def _devices(pod: Document) -> Iterator[list[str]]:
    """Yield the devices from plugins, with the health of those that are not healthy."""
    for key in ("initContainerStatuses", "containerStatuses"):
        for status in mappings(pod, "status", key):
            for allocated in mappings(status, "allocatedResourcesStatus"):
                devices = ", ".join(_device(d) for d in mappings(allocated, "resources"))
                yield [text(status, "name"), text(allocated, "name"), devices]


def _device(device: Document) -> str:
    id, health = text(device, "resourceID"), text(device, "health")
    return id if health in ("", "Healthy") else f"{id} ({health})"


def _claims(pod: Document, reader: Reader) -> Iterator[list[str]]:
    made = {text(s, "name"): text(s, "resourceClaimName") for s in mappings(pod, "status", "resourceClaimStatuses")}
    for wanted in mappings(pod, "spec", "resourceClaims"):
        name = text(wanted, "name")
        claim_name = text(wanted, "resourceClaimName") or made.get(name, "")
        if not claim_name:
            yield [name, f"from template {text(wanted, 'resourceClaimTemplateName')}", "not created", ""]
            continue
        claim = reader.one(claims.CLAIMS, text(pod, "metadata", "namespace"), claim_name)
        if claim is None:
            yield [name, claim_name, "not found", ""]
            continue
        got = ", ".join(f"{d['driver']}/{d['pool']}/{d['device']}" for d in claims.devices(claim))
        yield [name, claim_name, claims.state(claim), got]
