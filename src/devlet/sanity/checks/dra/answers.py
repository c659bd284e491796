"""Comparison and formatting of a driver's responses."""

from collections.abc import Sequence
from typing import Any

from devlet.sanity.check import Failed, Outcome, Passed

__all__ = ["ids_of", "line", "same"]


def ids_of(devices: Sequence[Any]) -> list[str]:
    """Return the IDs of CDI devices, in order."""
    return [id for device in devices for id in device.cdi_device_ids]


def line(message: object) -> str:
    """Return a protobuf message on one line."""
    return " ".join(str(message).split())


def same(first: Sequence[Any], second: Sequence[Any], when: str) -> Outcome:
    """Check that two responses for the same claim are equal, whatever their order."""
    one, other = sorted(map(line, first)), sorted(map(line, second))
    if one != other:
        return Failed(
            f"two responses for the same claim differ, {when}: {one or 'no devices'}; {other or 'no devices'}"
        )
    return Passed()
