"""What a container gets with a device of a claim: from what was seen for some devices to what is played for others.

As with `grants`: edits that explain all that was seen are kept with placeholders. A device of which nothing is known
gets a variable with its name.
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
    """A device, and the claim that it is for."""

    pool: str
    device: str
    claim: str


def summarised(seen: Iterable[DeviceEdits]) -> tuple[DeviceEdits, ...]:
    """One without names if it explains them all."""
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
    """With placeholders. None if nothing was seen."""
    found = {(each.pool, each.device): each.container_edits for each in driver.prepared}
    return found.get((pool, device), found.get(("", "")))


def names(device: str) -> dict[str, str]:
    """What stands for it."""
    return {DEVICE: device, VARIABLE: variable(device)}


def _template(seen: DeviceEdits) -> ContainerEdits:
    return changed(seen.container_edits, lambda text: generalised(text, names(seen.device)))


def _for(template: ContainerEdits, values: Mapping[str, str]) -> ContainerEdits:
    return changed(template, lambda text: filled(text, values))


def _is_sure(template: ContainerEdits, seen: int) -> bool:
    """What was seen once may be the same for all devices or not: a node that does not name its device."""
    return seen > 1 or all(DEVICE in node.path for node in template.device_nodes)
