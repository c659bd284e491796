"""The other end of `kubelet-claims test-driver`: Kubernetes' own DRA driver, whose faults come and go while it runs.

    await driver.block(Method.PREPARE)       # with the driver's own hook
    await driver.hold(Method.PREPARE, AFTER)  # on the wire: it has prepared the claim, and nobody has heard of it

A call that the driver's own hook blocks keeps the driver's lock: all others wait, too, and go on when it is unblocked,
even if nobody waits for their answers any more. What is held ends with its caller. The driver's own hooks are forgotten
when the part that they belong to stops; what is held or refused stays.
"""

from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from devlet.kit.processes import RunningProcess
from tests.support.peers.control_socket import ANSWER_TIMEOUT, ControlSocket

__all__ = ["AFTER", "BEFORE", "Call", "HookedDriver", "Method", "Part", "PreparedClaim"]

BEFORE, AFTER = "before", "after"


class Method(StrEnum):
    PREPARE = "NodePrepareResources"
    UNPREPARE = "NodeUnprepareResources"
    WATCH_HEALTH = "NodeWatchResources"
    GET_INFO = "GetInfo"
    NOTIFY = "NotifyRegistrationStatus"


class Part(StrEnum):
    """What of the driver stops and starts alone. Claims and health are the service's."""

    REGISTRAR = "registrar"
    SERVICE = "service"


class Call(Struct, frozen=True):
    """`method` is the whole path. `stage` is `before`, `running`, `after` or `done`; `code` is gRPC's, of one that is
    done. Messages are as protobuf's JSON with the names of the fields."""

    method: str
    stage: str
    request: dict[str, Any] | None
    response: dict[str, Any] | None
    code: str
    error: str


class PreparedClaim(Struct, frozen=True):
    name: str
    uid: str


class HookedDriver:
    """Every command is over, and in force, when it returns. InvalidInput says what the driver does not accept."""

    def __init__(self, process: RunningProcess, control: Path, *, timeout: float = ANSWER_TIMEOUT) -> None:
        self.process = process
        self._do = ControlSocket(process.name, control, timeout=timeout).do

    async def block(self, method: Method) -> None:
        """PREPARE or UNPREPARE, in the middle of the call."""
        await self._do("block", method=method)

    async def unblock(self, method: Method) -> None:
        await self._do("unblock", method=method)

    async def fail(self, method: Method) -> None:
        """All but WATCH_HEALTH, with the driver's own error."""
        await self._do("fail", method=method)

    async def unfail(self, method: Method) -> None:
        await self._do("unfail", method=method)

    async def hold(self, method: Method, stage: str = BEFORE) -> None:
        """Calls wait before the driver gets them, or after it has answered."""
        await self._do("hold", method=method, stage=stage)

    async def release(self, method: Method) -> None:
        await self._do("release", method=method)

    async def refuse(self, method: Method, code: str = "UNAVAILABLE", message: str = "refused by a test") -> None:
        """Answers in the driver's place, and ends streams that are open."""
        await self._do("refuse", method=method, code=code, message=message)

    async def accept(self, method: Method) -> None:
        await self._do("accept", method=method)

    async def calls(self, method: Method | None = None) -> list[Call]:
        """In the order of arrival, those that are not over included."""
        calls = msgspec.convert(await self._do("calls"), list[Call])
        return [call for call in calls if method is None or call.method.endswith(f"/{method}")]

    async def forget_calls(self) -> None:
        await self._do("forget")

    async def prepared(self) -> list[PreparedClaim]:
        """By UID. Refused while a call is blocked."""
        return sorted(msgspec.convert(await self._do("prepared"), list[PreparedClaim]), key=lambda claim: claim.uid)

    async def is_registered(self) -> bool:
        """The node has told the driver so."""
        return bool(await self._do("registered"))

    async def set_health(self, pool: str, device: str, health: str, message: str = "") -> None:
        """`Healthy`, `Unhealthy`, or else unknown. Refused when ten changes wait for a stream."""
        await self._do("health", pool=pool, device=device, health=health, message=message)

    async def start(self, *parts: Part) -> None:
        """Both without parts."""
        for part in parts or (Part.SERVICE, Part.REGISTRAR):
            await self._do("start", part=part)

    async def stop(self, *parts: Part) -> None:
        """In good order: the socket is gone, too. Both without parts."""
        for part in parts or (Part.SERVICE, Part.REGISTRAR):
            await self._do("stop", part=part)
