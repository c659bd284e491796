"""Release a claim by hand: an administrator's way out if a driver does not unprepare the claim of a pod that is gone.

Forgetting a claim that its driver still has prepared frees its devices for others. Only a person can know whether that
is safe, so it is logged as a warning and reported as an event."""

import logging
from collections.abc import Callable

from devlet.errors import NotFound, NotPrepared
from devlet.kit.facts import facts
from devlet.node.claims.desk import Desk
from devlet.node.claims.problems import text_for
from devlet.node.claims.records import ClaimKey
from devlet.node.claims.unpreparing import let_go
from devlet.node.reports import Report
from devlet.objects.identifiers import PodUID

__all__ = ["RELEASED", "release"]

log = logging.getLogger(__name__)

RELEASED = "ClaimReleased"


async def release(key: ClaimKey, desk: Desk, *, force: bool, report: Callable[[Report], None]) -> None:
    """As `ClaimManager.release`."""
    async with desk.locks.hold([key]):
        for pod in _users(key, desk):
            problems = await let_go([key], pod, desk) if desk.book.get(key) else []
            if text := text_for(key, problems):
                await _forget(key, text, desk, force=force, report=report)


def _users(key: ClaimKey, desk: Desk) -> list[PodUID]:
    """NotPrepared if one of them is not over: it may be using the devices."""
    if (entry := desk.book.get(key)) is None:
        raise NotFound(f"ResourceClaim {key} is not prepared on this node", name=key.name)
    pods = sorted(map(PodUID, entry.pods or {""}))
    if using := [pod for pod in pods if pod and pod not in desk.ending]:
        names = ", ".join(using)
        raise NotPrepared(f"ResourceClaim {key} is used by pods that have not ended: {names}. Delete them first")
    return pods


async def _forget(key: ClaimKey, text: str, desk: Desk, *, force: bool, report: Callable[[Report], None]) -> None:
    if not force:
        raise NotPrepared(f"ResourceClaim {key} was not released: {text}. To forget it all the same, use --force")
    drivers = ", ".join(sorted(desk.book[key].drivers or {}))
    desk.book.remove(key)
    desk.progress.forget(key)
    await desk.saver.save()
    log.warning("claim released by force", extra=facts(claim=str(key), driver=drivers, err=text))
    message = f"ResourceClaim {key} was released by force, although it was not unprepared: {text}"
    report(Report("Warning", RELEASED, message))
