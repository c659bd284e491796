"""What is to go wrong with the calls between a node and a driver, and what was called.

    faults = Faults()
    faults.delay("NodePrepareResources", 0.5)                     every call is forwarded later
    faults.hang("NodePrepareResources", after=True)               … is done by the driver, and nobody hears of it yet
    faults.drop("NodePrepareResources", times=1)                  the next call is lost: nobody answers it, ever
    faults.error("Allocate", "INTERNAL", "broken", skip=2)        from the third on, calls are answered with that error
    faults.corrupt("GetInfo")                                     one bit of each answer is not what it was
    faults.disconnect("NodePrepareResources", Moment.DURING)      the connection breaks off in the middle of the answer
    faults.reorder("NodePrepareResources")                        of two calls, the second is answered first
    faults.duplicate("NodePrepareResources", probability=0.1)     now and then the driver is called twice
    faults.error("*", when=lambda call: "gpu" in str(call.request))

A method is named by its last part, by its whole path, or by a pattern for paths (`/v1beta1.*`). If several faults meet
a call, they happen one after the other, in the order in which they were asked for. What a newcomer gets wrong: nothing
happens before calls go through a proxy; `DriverRunner.start(…, faults=faults)` and `FaultyWire` see to that.

This module decides; `grpc_proxy` acts.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypedDict, Unpack

from devlet.kit.dice import Dice
from devlet.testing import grpc_messages
from devlet.testing.fault_acts import (
    Act,
    Change,
    Corrupt,
    Delay,
    Disconnect,
    Drop,
    Duplicate,
    Error,
    Hang,
    Moment,
    Reorder,
    flipped,
    replaced,
)
from devlet.testing.spelling import check_word, status_code
from devlet.testing.waiting import DEADLINE, ThreadSafeChanges

__all__ = ["ANSWER", "REQUEST", "Call", "Faults", "Moment", "Occasion", "Part", "Rule"]


class Part(StrEnum):
    REQUEST = "request"
    ANSWER = "answer"


REQUEST, ANSWER = Part.REQUEST, Part.ANSWER


@dataclass(slots=True, eq=False)
class Call:
    """One call. `requests` are what the caller sent, `answers` what the driver did, before any fault; `faults` are what
    happened to it. `status` is what the caller was told, as gRPC spells it: empty while the call is under way,
    CANCELLED if the caller gave up or was cut off."""

    path: str
    socket: Path
    requests: list[bytes] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    status: str = ""

    @property
    def method(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def request(self) -> Any:
        """The first one as a protobuf message; None if its type is not known here, or the bytes are none."""
        return grpc_messages.request(self.path, self.requests[0]) if self.requests else None

    @property
    def answer(self) -> Any:
        """The last one so far, in the same way."""
        return grpc_messages.answer(self.path, self.answers[-1]) if self.answers else None


class Occasion(TypedDict, total=False):
    """When a fault happens. After the work, each answer of a stream is an occasion of its own."""

    when: Callable[[Call], bool]
    skip: int  # so many that it could happen to are spared first
    probability: float
    times: int  # it happens at most so often


class Rule:
    """One fault that was asked for. `hits` is how often it happened."""

    def __init__(self, faults: "Faults", method: str, act: Act, after: bool, occasion: "Occasion") -> None:
        self.act = act
        self.after = after
        self.hits = 0
        self.is_over = False
        self._faults = faults
        self._method = method
        self._occasion = occasion
        self._skipped = 0

    def end(self) -> None:
        """It does not happen any more; calls that it holds go on."""
        self.is_over = True
        self._faults.changes.notify()

    async def until_hit(self, times: int = 1) -> None:
        await self._faults.changes.until(lambda: self.hits >= times)

    def wait_hit(self, times: int = 1, *, within: float = DEADLINE) -> None:
        """The same for a thread without event loop. AssertionError if it takes longer."""
        if not self._faults.changes.wait_until(lambda: self.hits >= times, within=within):
            raise AssertionError(f"{self} did not happen within {within:g} s\n{self._faults.story}")

    def meets(self, call: Call, after: bool, dice: Dice) -> bool:
        """Whether it happens now; then it counts."""
        if self.is_over or after is not self.after or not matches(self._method, call.path):
            return False
        if self._occasion.get("times") == self.hits or not self._occasion.get("when", _always)(call):
            return False
        if self._skipped < self._occasion.get("skip", 0):
            self._skipped += 1
            return False
        if not dice.chance(self._occasion.get("probability", 1.0)):
            return False
        self.hits += 1
        return True

    def __str__(self) -> str:
        return f"{self.act} of {self._method}{' after the work' if self.after else ''}"


class Faults:
    """May be changed at any time, from any thread. With the same seed, the same sequence of calls meets the same
    faults. Every method that asks for a fault also takes an `Occasion`, and gives the `Rule`."""

    def __init__(self, seed: int = 0) -> None:
        self.calls: list[Call] = []
        self.changes = ThreadSafeChanges()
        self._dice = Dice(seed)
        self._rules: list[Rule] = []

    # What is to go wrong

    def delay(self, method: str, seconds: float, *, after: bool = False, **occasion: Unpack[Occasion]) -> Rule:
        """Forward calls later, or with `after`, answers."""
        return self._add(method, Delay(seconds), after, occasion)

    def hang(self, method: str, *, after: bool = False, **occasion: Unpack[Occasion]) -> Rule:
        """Forward nothing until the rule is ended, or, with `after`, answer nothing."""
        return self._add(method, Hang(), after, occasion)

    def drop(self, method: str, *, after: bool = False, **occasion: Unpack[Occasion]) -> Rule:
        """Lose calls, or, with `after`, answers: the caller waits until it gives up by itself."""
        return self._add(method, Drop(), after, occasion)

    def error(
        self,
        method: str,
        code: str = "INTERNAL",
        text: str = "told to fail",
        *,
        after: bool = False,
        **occasion: Unpack[Occasion],
    ) -> Rule:
        """Answer with an error of gRPC. With `after` the driver has done its work nevertheless."""
        return self._add(method, Error(status_code(code), text), after, occasion)

    def corrupt(
        self, method: str, of: Part = ANSWER, to: bytes | Change | None = None, **occasion: Unpack[Occasion]
    ) -> Rule:
        """Change the bytes of requests or answers: into these, by this function, or at one bit that the dice choose."""
        change = to if callable(to) else flipped(self._dice) if to is None else replaced(to)
        return self._add(method, Corrupt(change), of is ANSWER, occasion)

    def disconnect(self, method: str, moment: Moment = Moment.BEFORE, **occasion: Unpack[Occasion]) -> Rule:
        """Close the caller's connection, and with it whatever else is under way on it."""
        return self._add(method, Disconnect(moment), moment is not Moment.BEFORE, occasion)

    def reorder(self, method: str, *, count: int = 2, within: float = 5.0, **occasion: Unpack[Occasion]) -> Rule:
        """Of so many calls at a time, answer the last one first. Who waits alone for `within` seconds goes on."""
        return self._add(method, Reorder(count, within), False, occasion)

    def duplicate(self, method: str, of: Part = REQUEST, **occasion: Unpack[Occasion]) -> Rule:
        """Call the driver twice, one after the other, and give its second answer; or give each answer twice. The first
        of two streams is left when it has begun to answer."""
        return self._add(method, Duplicate(), of is ANSWER, occasion)

    def recover(self) -> None:
        """End all faults. Calls that hang go on; those that were dropped stay lost."""
        rules, self._rules = self._rules, []
        for rule in rules:
            rule.end()

    def _add(self, method: str, act: Act, after: bool, occasion: Occasion) -> Rule:
        for option in occasion:
            check_word(option, Occasion.__annotations__, "option of a fault")
        rule = Rule(self, method, act, after, occasion)
        self._rules = [*(each for each in self._rules if not each.is_over), rule]
        return rule

    # What was called

    def asked(self, method: str = "*") -> list[Call]:
        return [call for call in self.calls if matches(method, call.path)]

    def over(self, method: str = "*") -> list[Call]:
        """Those that are not under way any more."""
        return [call for call in self.asked(method) if call.status]

    async def until_asked(self, method: str, times: int = 1) -> list[Call]:
        """Wait until it was called so many times."""
        await self.changes.until(lambda: len(self.asked(method)) >= times)
        return self.asked(method)

    async def until_over(self, method: str, times: int = 1) -> list[Call]:
        """Wait until so many calls have ended."""
        await self.changes.until(lambda: len(self.over(method)) >= times)
        return self.over(method)

    def wait_asked(self, method: str, times: int = 1, *, within: float = DEADLINE) -> list[Call]:
        """`until_asked` for a thread without event loop. AssertionError if it takes longer."""
        if not self.changes.wait_until(lambda: len(self.asked(method)) >= times, within=within):
            seen = f"{len(self.asked(method))} of {times} calls of {method} within {within:g} s"
            raise AssertionError(f"{seen}\n{self.story}")
        return self.asked(method)

    def forget_calls(self) -> None:
        self.calls.clear()

    @property
    def story(self) -> str:
        """All calls as text, one per line."""
        return "\n".join(f"  {call.path}: {call.status or 'under way'}{_told(call.faults)}" for call in self.calls)

    # For the proxies

    def meeting(self, call: Call, *, after: bool) -> list[Rule]:
        """The rules that happen to the call now, in their order."""
        found = [rule for rule in self._rules if rule.meets(call, after, self._dice)]
        call.faults += [str(rule.act) for rule in found]
        if found:
            self.changes.notify()
        return found


def matches(method: str, path: str) -> bool:
    return method in (path, path.rpartition("/")[2]) or fnmatchcase(path, method)


def _always(call: Call) -> bool:
    return True


def _told(faults: list[str]) -> str:
    return f" ({', '.join(faults)})" if faults else ""
