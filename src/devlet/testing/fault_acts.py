"""What can happen to a call between a node and a driver. `grpc_faults` chooses these values, and `grpc_proxy` acts on
them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import grpc

from devlet.kit.dice import Dice

__all__ = [
    "Act",
    "Change",
    "Corrupt",
    "Delay",
    "Disconnect",
    "Drop",
    "Duplicate",
    "Error",
    "Hang",
    "Moment",
    "Reorder",
    "Turn",
    "flipped",
    "replaced",
]

Change = Callable[[bytes], bytes]


class Moment(StrEnum):
    """When to disconnect. BEFORE: the driver never gets the call. DURING: it did its work, and half of the answer
    arrives. AFTER: the whole answer arrives."""

    BEFORE = "before the call"
    DURING = "in the middle of the answer"
    AFTER = "after the answer"


@dataclass(frozen=True, slots=True)
class Delay:
    seconds: float

    def __str__(self) -> str:
        return f"delay of {self.seconds:g} s"


@dataclass(frozen=True, slots=True)
class Hang:
    def __str__(self) -> str:
        return "hang"


@dataclass(frozen=True, slots=True)
class Drop:
    def __str__(self) -> str:
        return "drop"


@dataclass(frozen=True, slots=True)
class Error:
    code: grpc.StatusCode
    text: str

    def __str__(self) -> str:
        return f"error {self.code.name}"


@dataclass(frozen=True, slots=True)
class Corrupt:
    change: Change

    def __str__(self) -> str:
        return "corruption"


@dataclass(frozen=True, slots=True)
class Disconnect:
    moment: Moment

    def __str__(self) -> str:
        return f"disconnection {self.moment}"


@dataclass(frozen=True, slots=True)
class Duplicate:
    def __str__(self) -> str:
        return "duplicate"


@dataclass(frozen=True, slots=True)
class Turn:
    """The place of a call in a group whose calls are answered in reverse order: each waits for the next one."""

    place: int
    size: int
    answered: set[int]  # places of the group

    @property
    def has_come(self) -> bool:
        return self.place == self.size - 1 or self.place + 1 in self.answered


@dataclass(slots=True, eq=False)
class Reorder:
    count: int
    within: float  # seconds
    _joined: int = 0
    _answered: set[int] = field(default_factory=set)

    def join(self) -> Turn:
        """Add a new call."""
        place = self._joined % self.count
        if place == 0:
            self._answered = set()
        self._joined += 1
        return Turn(place, self.count, self._answered)

    def __str__(self) -> str:
        return "another order"


Act = Delay | Hang | Drop | Error | Corrupt | Disconnect | Duplicate | Reorder


def flipped(dice: Dice) -> Change:
    """Flip one bit of the message; add a byte to an empty one."""

    def change(message: bytes) -> bytes:
        if not message:
            return b"\xff"
        place, bit = dice.number(0, len(message) - 1), 1 << dice.number(0, 7)
        return message[:place] + bytes([message[place] ^ bit]) + message[place + 1 :]

    return change


def replaced(by: bytes) -> Change:
    return lambda message: by
