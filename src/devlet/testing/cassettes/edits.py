"""What a container gets with a device of a claim: from what was seen for some devices to what is played for others.

As with `grants`: edits that explain all that was seen are kept with placeholders. A device of which nothing is known
gets a variable with its name.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from devlet.runtime.cdi.spec import ContainerEdits
from devlet.testing.cassettes.cassette import DeviceEdits, Driver
from devlet.testing.cassettes.placeholders import CLAIM, DEVICE, POOL, changed, filled, generalised

__all__ = ["Given", "for_device", "known", "summarised"]


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
        explained = all(_for(template, {DEVICE: each.device}) == each.container_edits for each in found.values())
        if explained and _is_sure(template, len(found)):
            return (DeviceEdits(template),)
    return tuple(found[key] for key in sorted(found))


def for_device(driver: Driver, given: Given) -> ContainerEdits:
    values = {POOL: given.pool, DEVICE: given.device, CLAIM: given.claim}
    return _for(known(driver, given.pool, given.device) or _name(given), values)


def known(driver: Driver, pool: str, device: str) -> ContainerEdits | None:
    """With placeholders. None if nothing was seen."""
    found = {(each.pool, each.device): each.container_edits for each in driver.prepared}
    return found.get((pool, device), found.get(("", "")))


def _name(given: Given) -> ContainerEdits:
    word = re.sub("[^A-Za-z0-9]", "_", given.device).upper()
    return ContainerEdits(env=(f"DEVICE_{word}={given.device}",))


def _template(seen: DeviceEdits) -> ContainerEdits:
    return changed(seen.container_edits, lambda text: generalised(text, {DEVICE: seen.device}))


def _for(template: ContainerEdits, values: Mapping[str, str]) -> ContainerEdits:
    return changed(template, lambda text: filled(text, values))


def _is_sure(template: ContainerEdits, seen: int) -> bool:
    """What was seen once may be the same for all devices or not: a node that does not name its device."""
    return seen > 1 or all(DEVICE in node.path for node in template.device_nodes)
