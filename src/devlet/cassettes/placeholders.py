"""Placeholders in recorded strings, so that what was recorded for one device can be played for another.

    {device} {pool}    the device of a claim            {id}     a device of a plugin; an entry with it is repeated
    {DEVICE}           the same in a variable's name             (GPU_0 for gpu-0)
    {claim.uid}        the claim that it is for         {ids}    all that a container gets, with commas
    {node}             the node that it is played on

Other text in braces is left as it is. A name is replaced only as a whole word: the id `0` is not found in
`/dev/nvidia0`, which is then played unchanged, and only for that device.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

__all__ = ["CLAIM", "DEVICE", "ID", "IDS", "NODE", "POOL", "VARIABLE", "changed", "filled", "generalised", "variable"]

DEVICE: Final = "{device}"
VARIABLE: Final = "{DEVICE}"
POOL: Final = "{pool}"
CLAIM: Final = "{claim.uid}"
NODE: Final = "{node}"
ID: Final = "{id}"
IDS: Final = "{ids}"

T = TypeVar("T")


def variable(name: str) -> str:
    """Return a name as part of the name of an environment variable."""
    return re.sub("[^A-Za-z0-9]", "_", name).upper()


def filled(text: str, values: Mapping[str, str]) -> str:
    """Fill placeholders in a single pass, so that inserted values are not replaced again."""
    if "{" not in text:
        return text
    pattern = "|".join(re.escape(each) for each in values)
    return re.sub(pattern, lambda match: values[match[0]], text) if pattern else text


def generalised(text: str, names: Mapping[str, str]) -> str:
    """Replace names by their placeholders, the longest name first."""
    for placeholder, name in sorted(names.items(), key=lambda item: -len(item[1])):
        if name:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", placeholder, text)
    return text


def changed(value: T, change: Callable[[str], str]) -> T:
    """Return a value with all its strings changed, except for field names and keys."""
    return msgspec.convert(_changed(msgspec.to_builtins(value), change), type=type(value))


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case list() | tuple():
            return [_changed(each, change) for each in value]
        case dict():
            return {key: _changed(each, change) for key, each in value.items()}
    return value
