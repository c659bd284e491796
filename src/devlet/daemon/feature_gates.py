"""The feature gates of Kubernetes that affect devlet, in Kubernetes' notation for flags: `A=true,B=false`.

Other gates have no effect. They are rejected instead of ignored, so that misspelt names are noticed.
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
    """Return the defaults of Kubernetes 1.36."""
    return dict(_DEFAULTS)


def parse(text: Any) -> dict[str, bool]:
    """Parse the gates in a text. Raises ValueError for an unknown gate, or a value other than true and false."""
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
    """Return whether a gate is enabled by this value."""
    if name not in _DEFAULTS:
        near = get_close_matches(name, NAMES, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ValueError(f"unknown feature gate {name[:80]!r}: {hint}devlet knows {', '.join(NAMES)}")
    text = str(value).lower()
    if text not in ("true", "false"):
        raise ValueError(f"{name}: {str(value)[:80]!r}: expected true or false")
    return text == "true"
