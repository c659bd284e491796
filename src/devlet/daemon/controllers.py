"""The selection of the embedded cluster's controllers, in kube-controller-manager's notation.

`*` selects all of them, `name` one, and `-name` all but that one; the first word about a controller counts. They can be
switched off because a real kube-controller-manager or kube-scheduler may do their work.
"""

from collections.abc import Sequence
from difflib import get_close_matches

RESOURCE_CLAIM = "resourceclaim"
TAINT_EVICTION = "device-taint-eviction"
SCHEDULER = "scheduler"

CONTROL = (RESOURCE_CLAIM, TAINT_EVICTION, SCHEDULER)  # what `--no-control` switches off
NODE_LIFECYCLE = "node-lifecycle"

NAMES = ("garbage-collector", "namespace", "serviceaccount", NODE_LIFECYCLE, *CONTROL)


def parse(text: str, names: Sequence[str] = NAMES) -> frozenset[str]:
    """Return the selected names. Raises ValueError for a name that does not exist."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if (name := word.removeprefix("-")) not in (*names, "*"):
            near = get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]}?" if near else f"expected some of {', '.join(names)}"
            raise ValueError(f"unknown controller {name!r}: {hint}")
    return frozenset(name for name in names if _runs(name, words))


def _runs(name: str, words: list[str]) -> bool:
    for word in words:
        if word == name:
            return True
        if word == f"-{name}":
            return False
    # `-namespace` alone leaves the others on; `namespace` alone selects only that one.
    return "*" in words or all(word.startswith("-") for word in words)
