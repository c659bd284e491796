"""Notify systemd that devlet is ready, stopping, or still alive. Outside systemd nothing is sent.

The protocol is one datagram of `KEY=value` lines to the socket in NOTIFY_SOCKET (sd_notify(3)). A service manager that
does not listen must not affect the service, so a failed send is only logged.
"""

import logging
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus

from devlet.kit.facts import facts

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Notifier:
    address: str = ""  # a path, or @ and an abstract name; empty: no service manager
    watchdog_interval: float = 0.0  # seconds; 0: no watchdog

    def ready(self) -> None:
        self._send("READY=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    async def watchdog(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Send a sign of life from the event loop, twice as often as the manager asks for. Runs as a part."""
        task_status.started()
        while self.watchdog_interval:
            self._send("WATCHDOG=1")
            await anyio.sleep(self.watchdog_interval / 2)

    def _send(self, message: str) -> None:
        if not self.address:
            return
        name = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
                sender.sendto(message.encode(), name)
        except OSError as e:
            log.warning("service manager not notified", extra=facts(socket=self.address, message=message, err=e))


def from_environment(environ: Mapping[str, str]) -> Notifier:
    address = environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@") or "\0" in address:
        return Notifier()
    return Notifier(address, _watchdog_interval(environ))


def _watchdog_interval(environ: Mapping[str, str]) -> float:
    """Return the interval; zero unless the watchdog is for this process (sd_watchdog_enabled(3))."""
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    micros = environ.get("WATCHDOG_USEC", "")
    return int(micros) / 1_000_000 if micros.isascii() and micros.isdigit() else 0.0
