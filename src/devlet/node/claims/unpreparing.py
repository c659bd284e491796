"""Unprepare the claims of a pod that has ended: those that no other pod uses, by their drivers.

The claim info cache alone says what there is to do. The claim objects may be deleted by then, and so may the pod.

An administrator can release a claim by force if its driver does not unprepare it. Forgetting a claim that its driver
still has prepared frees its devices for other claims. Only a person can know whether that is safe, so it is logged as a
warning and reported as an event.
"""

import logging
from collections.abc import Callable, Sequence

import anyio

from devlet.errors import NotFound, NotPrepared, PluginError
from devlet.kit.facts import facts
from devlet.node.claims.prepare_context import (
    Batches,
    PrepareContext,
    Problem,
    call_drivers,
    problem_text,
    raise_for,
)
from devlet.node.claims.records import ClaimKey, ClaimState
from devlet.node.reports import Report
from devlet.objects.identifiers import DriverName, PodUID

__all__ = ["RELEASED", "release", "unprepare", "unprepare_claims"]

log = logging.getLogger(__name__)

RELEASED = "ClaimReleased"


async def unprepare(pod: PodUID, context: PrepareContext) -> None:
    """See `ClaimManager.unprepare`."""
    if not (claims := context.cache.claims_of(pod)):
        if pod in context.unsaved:
            await _save(pod, context)
        return
    async with context.locks.hold(claims):
        problems = await unprepare_claims(sorted(context.cache.claims_of(pod) & claims), pod, context)
    raise_for(problems)


async def unprepare_claims(claims: Sequence[ClaimKey], pod: PodUID, context: PrepareContext) -> list[Problem]:
    """Delete the pod's references to these claims, and unprepare those that no other pod uses. The caller holds their
    locks. If a driver fails, the pod keeps its reference."""
    with anyio.CancelScope(shield=True):
        problems = await _call(_batches([key for key in claims if _is_last(key, pod, context)], context), context)
        for key in claims:
            _delete_reference(key, pod, problems, context)
        await _save(pod, context)
    return problems


async def _save(pod: PodUID, context: PrepareContext) -> None:
    """Save the cache. If that fails the pod is not done, although the cache no longer has any reference of it."""
    context.unsaved.add(pod)
    await context.saver.save()
    context.unsaved.discard(pod)


def _is_last(key: ClaimKey, pod: PodUID, context: PrepareContext) -> bool:
    return not (context.cache[key].pods or frozenset()) - {pod}


def _batches(claims: Sequence[ClaimKey], context: PrepareContext) -> Batches:
    found: Batches = {}
    for key in claims:
        context.progress.note(key, ClaimState.UNPREPARING)
        for driver in map(DriverName, context.cache[key].drivers or {}):
            found.setdefault(driver, []).append(key)
    return found


def _delete_reference(key: ClaimKey, pod: PodUID, problems: Sequence[Problem], context: PrepareContext) -> None:
    if text := problem_text(key, problems):
        context.progress.note(key, ClaimState.FAILED, text)
        return
    context.cache.delete_reference(key, pod)
    if context.cache.get(key) is None:
        context.progress.forget(key)


async def _call(batches: Batches, context: PrepareContext) -> list[Problem]:
    async def ask(name: DriverName, batch: list[ClaimKey]) -> list[Problem]:
        references = {key: context.reference(key, name) for key in batch}
        if problem := context.unusable(name):
            return [Problem(name, key, problem) for key in batch]
        for key in batch:
            context.cache.unconfirm(key, name)
        try:
            found = await context.drivers.pick(name).unprepare(list(references.values()))
        except PluginError as e:
            return [Problem(name, key, e.message) for key in batch]
        problems = []
        for key, reference in references.items():
            if (failed := found[reference.uid]) is not None:
                problems.append(Problem(name, key, failed.message))
            else:
                context.cache.delete_driver(key, name)
                log.info("claim unprepared", extra=facts(claim=str(key), driver=name))
        return problems

    return await call_drivers(batches, ask)


async def release(key: ClaimKey, context: PrepareContext, *, force: bool, report: Callable[[Report], None]) -> None:
    """See `ClaimManager.release`."""
    async with context.locks.hold([key]):
        for pod in _ended_users(key, context):
            problems = await unprepare_claims([key], pod, context) if context.cache.get(key) else []
            if text := problem_text(key, problems):
                await _forget(key, text, context, force=force, report=report)


def _ended_users(key: ClaimKey, context: PrepareContext) -> list[PodUID]:
    """Return the pods that use the claim. Raise NotPrepared if one has not ended: it may be using the devices."""
    if (entry := context.cache.get(key)) is None:
        raise NotFound(f"ResourceClaim {key} is not prepared on this node", name=key.name)
    pods = sorted(map(PodUID, entry.pods or {""}))
    if using := [pod for pod in pods if pod and pod not in context.ending]:
        names = ", ".join(using)
        raise NotPrepared(f"ResourceClaim {key} is used by pods that have not ended: {names}. Delete them first")
    return pods


async def _forget(
    key: ClaimKey, text: str, context: PrepareContext, *, force: bool, report: Callable[[Report], None]
) -> None:
    if not force:
        raise NotPrepared(f"ResourceClaim {key} was not released: {text}. To forget it all the same, use --force")
    drivers = ", ".join(sorted(context.cache[key].drivers or {}))
    context.cache.remove(key)
    context.progress.forget(key)
    await context.saver.save()
    log.warning("claim released by force", extra=facts(claim=str(key), driver=drivers, err=text))
    message = f"ResourceClaim {key} was released by force, although it was not unprepared: {text}"
    report(Report("Warning", RELEASED, message))
