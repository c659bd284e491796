"""The API server of the cluster that a kubeconfig names, and waiting until it answers.

There is no time limit for a server that cannot be reached. A server that refuses our credentials is retried for a
minute, because a starting server may not have loaded its rules yet, whereas a wrong token stays wrong.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.connection import Connection
from devlet.errors import Forbidden, Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.kit.facts import facts

__all__ = ["Settings", "connection_of", "until_answered"]

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Settings:
    retry: Backoff = field(default=Backoff(0.5, 10.0))
    refused: float = 60.0  # seconds during which a refusal may come from a starting server


def connection_of(file: Path, context: str = "") -> Connection:
    """Return the connection. Raises InvalidInput if the kubeconfig cannot be read or does not have the context."""
    return kubeconfig.connection([file], context)


async def until_answered(
    call: Callable[[], Awaitable[T]], server: str, clock: Clock, settings: Settings = Settings()
) -> T:
    """Repeat the call until the server answers, and return its result. Failures are logged."""
    began, refused_since = clock.monotonic(), -1.0
    for delay in settings.retry.delays(random.random):
        try:
            return await call()
        except Unavailable as e:
            refused_since = -1.0
            problem: Exception = e
        except Forbidden as e:
            if refused_since < 0:
                refused_since = clock.monotonic()
            if clock.monotonic() - refused_since >= settings.refused:
                raise Forbidden(f"{server} refuses the credentials in the kubeconfig: {e}") from e
            problem = e
        waited = clock.monotonic() - began
        log.warning("waiting for the API server", extra=facts(server=server, waited=waited, delay=delay, err=problem))
        await clock.sleep(delay)
    raise AssertionError("unreachable")
