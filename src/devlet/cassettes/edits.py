"""What a container gets with a device of a claim, derived for all devices from what was recorded for some.

As in `grants`, edits that match everything recorded are kept as a template with placeholders. A device for which
nothing was recorded gets a variable with its name.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from devlet.cassettes.cassette import DeviceEdits, Driver
from devlet.cassettes.placeholders import (
    CLAIM,
    DEVICE,
    POOL,
    VARIABLE,
    changed,
    filled,
    generalised,
    variable,
)
from devlet.runtime.cdi.spec import ContainerEdits

__all__ = ["Given", "for_device", "known", "names", "summarised"]

_NOTHING_KNOWN: Final = ContainerEdits(env=(f"DEVICE_{VARIABLE}={DEVICE}",))


class Given(NamedTuple):
    """A device and the claim to which it is allocated."""

    pool: str
    device: str
    claim: str


def summarised(seen: Iterable[DeviceEdits]) -> tuple[DeviceEdits, ...]:
    """Return a single template if it matches all recorded edits, or else the edits themselves."""
    found = {(each.pool, each.device): each for each in seen}
    templates = [_template(each) for each in found.values()]
    if templates and all(template == templates[0] for template in templates):
        template = templates[0]
        explained = all(_for(template, names(each.device)) == each.container_edits for each in found.values())
        if explained and _is_sure(template, len(found)):
            return (DeviceEdits(template),)
    return tuple(found[key] for key in sorted(found))


def for_device(driver: Driver, given: Given) -> ContainerEdits:
    values = {**names(given.device), POOL: given.pool, CLAIM: given.claim}
    return _for(known(driver, given.pool, given.device) or _NOTHING_KNOWN, values)


def known(driver: Driver, pool: str, device: str) -> ContainerEdits | None:
    """Return the edits of a device, with placeholders; None if nothing was recorded."""
    found = {(each.pool, each.device): each.container_edits for each in driver.prepared}
    return found.get((pool, device), found.get(("", "")))


def names(device: str) -> dict[str, str]:
    """Return the placeholders that stand for a device."""
    return {DEVICE: device, VARIABLE: variable(device)}


def _template(seen: DeviceEdits) -> ContainerEdits:
    return changed(seen.container_edits, lambda text: generalised(text, names(seen.device)))


def _for(template: ContainerEdits, values: Mapping[str, str]) -> ContainerEdits:
    return changed(template, lambda text: filled(text, values))


def _is_sure(template: ContainerEdits, seen: int) -> bool:
    """Return whether the template holds for all devices. Seen once, a node that does not name its device may not."""
    return seen > 1 or all(DEVICE in node.path for node in template.device_nodes)
