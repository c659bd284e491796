"""Record the calls of a fake DRA driver, and make it misbehave.

    script.fail(PREPARE, "INTERNAL", "out of order", times=2)   the next two calls are answered with that error
    script.hang(PREPARE)                                        … all with nothing, until `recover`
    script.hang(PREPARE, after=True)                            … the work is done, but not answered
    script.delay(PREPARE, 0.5)                                  … later
    script.answer(PREPARE, GARBAGE)                             … with these bytes
    script.hang_up(PREPARE, times=1)                            … by closing the connection in the middle of the call
    script.fail_claim("gpu", "no such device")                  … for the claim of this name, or UID, with that error
    script.skip_claim("gpu")                                    … without an entry for it
    script.answer_also("a-uid")                                 … with an entry for a claim that was not asked for
    script.recover(PREPARE)                                     … as it should be
    script.recover()                                            the same for everything

A method is named by one of the constants here, whatever the API version calls it, or by its path on the wire, for that
version alone (`/v1alpha2.Node/NodePrepareResource`). Of the faults of a whole call the last one counts; those of
single claims add up. `calls` has what was asked, in the order in which it arrived.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio
import grpc

from devlet.kit.changes import Changes
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins.dra import ClaimProblem, ClaimRef
from devlet.testing.spelling import status_code

__all__ = ["GARBAGE", "GET_INFO", "NOTIFY", "PREPARE", "UNPREPARE", "WATCH", "Answers", "Call", "Context", "DraScript"]

PREPARE = "NodePrepareResources"
UNPREPARE = "NodeUnprepareResources"
WATCH = "NodeWatchResources"
GET_INFO = "GetInfo"
NOTIFY = "NotifyRegistrationStatus"

GARBAGE = b"\xff\xff\xff\xff not protobuf"  # for `answer`

Context = grpc.aio.ServicerContext[bytes, bytes]
Answers = dict[str, tuple[PreparedDevice, ...] | ClaimProblem]  # by claim UID; an unprepared claim has no devices


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `service` is the API version of the call, and `text` the error in NotifyRegistrationStatus. Two calls
    are equal if they ask for the same; how and when does not matter."""

    method: str
    claims: tuple[ClaimRef, ...] = ()
    text: str = ""
    service: str = field(default="", compare=False)
    path: str = field(default="", compare=False)
    at: float = field(default=0.0, compare=False)  # of the monotonic clock, to compare with calls of other drivers

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the claims."""
        return tuple(claim.name for claim in self.claims)


@dataclass(frozen=True, slots=True)
class _Failure:
    code: grpc.StatusCode
    text: str


@dataclass(frozen=True, slots=True)
class _Delay:
    seconds: float


@dataclass(frozen=True, slots=True)
class _HangUp:
    pass


@dataclass(frozen=True, slots=True)
class _Hang:
    released: anyio.Event = field(default_factory=anyio.Event)


@dataclass(slots=True)
class _Counted:
    left: int | None  # how often it happens; None: always

    def happens(self) -> bool:
        if self.left is not None:
            self.left -= 1
        return self.left is None or self.left >= 0


@dataclass(slots=True)
class _Fault(_Counted):
    """A fault of a call."""

    act: _Failure | _Delay | _HangUp | _Hang | bytes
    after: bool


@dataclass(slots=True)
class _Change(_Counted):
    """A change of the answer for a claim: it is refused for a reason, added, or left out."""

    method: str
    claim: str  # name or UID
    refuses: str | None = None
    adds: tuple[PreparedDevice, ...] | ClaimProblem | None = None

    def meets(self, claim: ClaimRef) -> bool:
        return self.claim in (claim.name, claim.uid) and self.happens()


class DraScript:
    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.on_call: Callable[[Call], None] = lambda call: None  # called at once for each call
        self._underway: list[Call] = []
        self._faults: dict[str, _Fault] = {}
        self._changes: list[_Change] = []
        self._notifier = Changes()

    def fail(
        self,
        method: str,
        code: str = "INTERNAL",
        text: str = "told to fail",
        *,
        times: int | None = None,
        after: bool = False,
    ) -> None:
        """Answer with an error; `code` is the name of a gRPC status. With `after` the work is done nevertheless."""
        self._set(method, _Fault(times, _Failure(status_code(code), text), after))

    def hang(self, method: str, *, times: int | None = None, after: bool = False) -> None:
        """Do not answer until `recover`."""
        self._set(method, _Fault(times, _Hang(), after))

    def delay(self, method: str, seconds: float, *, times: int | None = None, after: bool = False) -> None:
        """Answer later."""
        self._set(method, _Fault(times, _Delay(seconds), after))

    def answer(self, method: str, message: bytes, *, times: int | None = None, after: bool = False) -> None:
        """Answer with a serialised message, valid or not."""
        self._set(method, _Fault(times, message, after))

    def hang_up(self, method: str, *, times: int | None = None, after: bool = False) -> None:
        """Close all connections of the socket instead of answering."""
        self._set(method, _Fault(times, _HangUp(), after))

    def fail_claim(
        self, claim: str, text: str = "told to fail", *, method: str = PREPARE, times: int | None = None
    ) -> None:
        """Answer with an error for this claim; the other claims of the call are served."""
        self._changes.append(_Change(times, method, claim, refuses=text))

    def skip_claim(self, claim: str, *, method: str = PREPARE, times: int | None = None) -> None:
        """Do the work for this claim, but leave it out of the answer."""
        self._changes.append(_Change(times, method, claim))

    def answer_also(
        self,
        uid: str,
        answer: tuple[PreparedDevice, ...] | ClaimProblem = (),
        *,
        method: str = PREPARE,
        times: int | None = None,
    ) -> None:
        """Have an entry for that UID in the answer, whatever was asked."""
        self._changes.append(_Change(times, method, uid, adds=answer))

    def recover(self, method: str = "") -> None:
        """End the faults of a method, or of all methods; calls that hang are answered now."""
        for name in [method] if method else list(self._faults):
            fault = self._faults.pop(name, None)
            if fault and isinstance(fault.act, _Hang):
                fault.act.released.set()
        self._changes = [change for change in self._changes if method and change.method != method]

    def asked(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    def underway(self, method: str) -> int:
        """Return how many calls are being answered."""
        return sum(call.method == method for call in self._underway)

    async def until_asked(self, method: str, times: int = 1) -> list[Call]:
        """Wait until it was called `times` times."""
        await self._notifier.until(lambda: len(self.asked(method)) >= times)
        return self.asked(method)

    async def until_underway(self, method: str, count: int) -> None:
        """Wait until exactly `count` calls are being answered."""
        await self._notifier.until(lambda: self.underway(method) == count)

    # For the services.

    @contextmanager
    def record(self, call: Call) -> Iterator[None]:
        self.calls.append(call)
        self.on_call(call)
        self._underway.append(call)
        self._notifier.notify()
        try:
            yield
        finally:
            self._underway = [other for other in self._underway if other is not call]
            self._notifier.notify()

    async def act(self, call: Call, context: Context, cut: Callable[[], None], *, after: bool) -> bytes | None:
        """Carry out a fault before or after the work. Return None to give the right answer."""
        fault = self._faults.get(call.path) or self._faults.get(call.method)
        if not fault or fault.after is not after or not fault.happens():
            return None
        match fault.act:
            case _Failure(code, text):
                await context.abort(code, text)
            case _Hang(released):
                await released.wait()
            case _Delay(seconds):
                await anyio.sleep(seconds)
            case _HangUp():
                cut()
                await anyio.sleep_forever()  # gRPC cancels this when it sees that the connection is gone
            case bytes(message):
                return message
        return None

    def refusals(self, call: Call) -> Mapping[str, str]:
        """Return the reasons for which claims of the call have to fail, by UID."""
        return {
            claim.uid: change.refuses
            for change in self._changes
            for claim in call.claims
            if change.method == call.method and change.refuses is not None and change.meets(claim)
        }

    def change(self, call: Call, answers: Answers) -> Answers:
        """Return the answers with all changes."""
        changed = dict(answers)
        for change in self._changes:
            if change.method != call.method or change.refuses is not None:
                continue
            if change.adds is None:
                for claim in filter(change.meets, call.claims):
                    changed.pop(claim.uid, None)
            elif change.happens():
                changed[change.claim] = change.adds
        return changed

    def _set(self, method: str, fault: _Fault) -> None:
        previous = self._faults.get(method)
        if previous and isinstance(previous.act, _Hang):
            previous.act.released.set()
        self._faults[method] = fault
