"""The health services of a DRA driver, which send the health of all its devices to the node.

The list is sent at once, after each change, and repeatedly: the node forgets the health of a device that is not
reported for a while.
"""

import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from typing import Final

from devlet.errors import InvalidInput
from devlet.sdk.board import Board
from devlet.sdk.mistakes import listed, type_problem
from devlet.sdk.server import Context, Methods
from devlet.sdk.values import HEALTHY, UNHEALTHY, UNKNOWN, DeviceHealth
from devlet.wire.dra_health import api_pb2 as pb

__all__ = ["HEALTH_SERVICES", "HealthService", "check"]

HEALTH_SERVICES: Final = ("v1alpha1.DRAResourceHealth", "v1.DRAResourceHealth")
"""The names under which they are advertised and called. Their messages are the same."""

MESSAGE_MAX: Final = 1024  # bytes that the node keeps
TIMEOUT_MAX: Final = (1 << 63) - 1  # seconds on the wire
_DEFAULT_TIMEOUT = 30.0  # seconds, of the node
_REPEATED = 3  # times within the shortest timeout
_MORE = "..."

_STATUS = {HEALTHY: pb.HEALTHY, UNHEALTHY: pb.UNHEALTHY, UNKNOWN: pb.UNKNOWN}


class HealthService:
    def __init__(self) -> None:
        self.board = Board[tuple[DeviceHealth, ...]]()

    def show(self, reports: Iterable[DeviceHealth]) -> None:
        """Send this list from now on. Raise InvalidInput if a report is not valid; the previous list stays."""
        self.board.show(check(listed(reports, "health()", "DeviceHealth")))

    @property
    def methods(self) -> Methods:
        return Methods(streams={f"/{name}/NodeWatchResources": self._watch for name in HEALTH_SERVICES})

    async def _watch(self, blob: bytes, context: Context) -> AsyncIterator[bytes]:
        async with aclosing(self.board.values(_pause)) as lists:
            async for reports in lists:
                yield _encoded(reports)


def check(reports: tuple[DeviceHealth, ...]) -> tuple[DeviceHealth, ...]:
    for each in reports:
        if problem := _problem(each):
            raise InvalidInput(problem)
    return reports


def _problem(report: object) -> str:
    """Return what is wrong with a report, also with its types; an empty string if nothing is."""
    if not isinstance(report, DeviceHealth):
        return f"{report!r} is not a DeviceHealth"
    where = f"health of {report.pool!r}/{report.device!r}"
    if problem := type_problem(report, report.__struct_fields__):
        return f"{where}: {problem}"
    if not report.pool or not report.device:
        return f"{where}: both the pool and the device need a name"
    if not (_is_sendable(report.pool) and _is_sendable(report.device)):
        return f"{where}: a name that is not UTF-8 cannot be sent"
    if report.health not in _STATUS:
        return f"{where} is {report.health!r}: expected one of {', '.join(_STATUS)}"
    if not 0 <= report.timeout <= TIMEOUT_MAX:
        return f"{where}: a timeout of {report.timeout} s is not valid: 0 leaves it to the node"
    return ""


def _is_sendable(text: str) -> bool:
    return text == text.encode(errors="replace").decode()


def _pause(reports: Sequence[DeviceHealth]) -> float:
    return min((each.timeout or _DEFAULT_TIMEOUT for each in reports), default=_DEFAULT_TIMEOUT) / _REPEATED


def _encoded(reports: Sequence[DeviceHealth]) -> bytes:
    now = int(time.time())
    devices = [
        pb.DeviceHealth(
            device=pb.DeviceIdentifier(pool_name=each.pool, device_name=each.device),
            health=_STATUS[each.health],
            last_updated_time=now,
            health_check_timeout_seconds=each.timeout,
            message=_cut(each.message),
        )
        for each in reports
    ]
    return pb.NodeWatchResourcesResponse(devices=devices).SerializeToString()


def _cut(message: str) -> str:
    """Shorten a message as the node would, but between characters."""
    blob = message.encode(errors="replace")
    if len(blob) <= MESSAGE_MAX:
        return blob.decode()
    return blob[: MESSAGE_MAX - len(_MORE)].decode(errors="ignore") + _MORE
