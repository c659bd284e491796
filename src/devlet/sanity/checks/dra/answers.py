"""What checks say about the answers of a driver."""

from collections.abc import Sequence
from typing import Any

from devlet.sanity.check import Failed, Outcome, Passed

__all__ = ["ids_of", "line", "same"]


def ids_of(devices: Sequence[Any]) -> list[str]:
    """The names of CDI devices, in their order."""
    return [id for device in devices for id in device.cdi_device_ids]


def line(message: object) -> str:
    """A message of protobuf on one line."""
    return " ".join(str(message).split())


def same(first: Sequence[Any], second: Sequence[Any], when: str) -> Outcome:
    """Whether two answers for one claim say the same; their order does not count."""
    one, other = sorted(map(line, first)), sorted(map(line, second))
    if one != other:
        return Failed(f"the same claim was answered with {one or 'no devices'} and {other or 'no devices'}, {when}")
    return Passed()
