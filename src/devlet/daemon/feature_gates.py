"""The feature gates of Kubernetes that change what devlet does, with its notation for flags: `A=true,B=false`.

A gate that is not listed here changes nothing. It is refused rather than ignored, so that a typing error is noticed.
"""

from difflib import get_close_matches
from typing import Any

DRA_EXTENDED_RESOURCE = "DRAExtendedResource"
DRA_WORKLOAD_RESOURCE_CLAIMS = "DRAWorkloadResourceClaims"
RESOURCE_HEALTH_STATUS = "ResourceHealthStatus"
RESOURCE_HEALTH_STATUS_MESSAGE = "ResourceHealthStatusMessage"

_DEFAULTS = {
    DRA_EXTENDED_RESOURCE: True,
    DRA_WORKLOAD_RESOURCE_CLAIMS: False,
    RESOURCE_HEALTH_STATUS: True,
    RESOURCE_HEALTH_STATUS_MESSAGE: True,
}
NAMES = tuple(_DEFAULTS)


def defaults() -> dict[str, bool]:
    """As in Kubernetes 1.36."""
    return dict(_DEFAULTS)


def parse(text: Any) -> dict[str, bool]:
    """The gates that are named. ValueError for one that does not exist, or a value that is neither true nor false."""
    if not isinstance(text, str):
        raise ValueError(f"{text!r} is not a list of feature gates such as {NAMES[0]}=true")
    found: dict[str, bool] = {}
    for word in filter(None, (word.strip() for word in text.split(","))):
        name, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"{word[:80]!r}: expected NAME=true or NAME=false")
        found[name.strip()] = gate(name.strip(), value.strip())
    return found


def gate(name: str, value: Any) -> bool:
    """Whether this gate is open. Later words about a gate win."""
    if name not in _DEFAULTS:
        near = get_close_matches(name, NAMES, 1)
        there_are = f": did you mean {near[0]}? There are" if near else "; there are"
        raise ValueError(f"there is no feature gate {name[:80]!r}{there_are} {', '.join(NAMES)}")
    text = str(value).lower()
    if text not in ("true", "false"):
        raise ValueError(f"{name}: {str(value)[:80]!r}: expected true or false")
    return text == "true"
