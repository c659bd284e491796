"""Unprepare the claims of a pod that is over: those that no other pod uses, by the drivers that know them.

What to do stands in the book alone. The claim objects may be gone by then, and so may the pod."""

import logging
from collections.abc import Sequence

import anyio

from devlet.errors import PluginError
from devlet.kit.facts import facts
from devlet.node.claims.desk import Batches, Desk, at_once
from devlet.node.claims.problems import Problem, raise_for, text_for
from devlet.node.claims.records import ClaimKey, ClaimState
from devlet.objects.identifiers import DriverName, PodUID

__all__ = ["let_go", "unprepare"]

log = logging.getLogger(__name__)


async def unprepare(pod: PodUID, desk: Desk) -> None:
    """As `ClaimManager.unprepare`."""
    if not (claims := desk.book.claims_of(pod)):
        if pod in desk.unsaved:
            await _save(pod, desk)
        return
    async with desk.locks.hold(claims):
        problems = await let_go(sorted(desk.book.claims_of(pod) & claims), pod, desk)
    raise_for(problems)


async def let_go(claims: Sequence[ClaimKey], pod: PodUID, desk: Desk) -> list[Problem]:
    """The pod refers to these claims, whose locks are held, and does not use them any more. Where that did not work it
    still refers to them."""
    with anyio.CancelScope(shield=True):
        problems = await _call(_batches([key for key in claims if _is_last(key, pod, desk)], desk), desk)
        for key in claims:
            _let_go(key, pod, problems, desk)
        await _save(pod, desk)
    return problems


async def _save(pod: PodUID, desk: Desk) -> None:
    """If that fails the pod is not done, although nothing in the book is left of it."""
    desk.unsaved.add(pod)
    await desk.saver.save()
    desk.unsaved.discard(pod)


def _is_last(key: ClaimKey, pod: PodUID, desk: Desk) -> bool:
    return not (desk.book[key].pods or frozenset()) - {pod}


def _batches(claims: Sequence[ClaimKey], desk: Desk) -> Batches:
    found: Batches = {}
    for key in claims:
        desk.progress.note(key, ClaimState.UNPREPARING)
        for driver in map(DriverName, desk.book[key].drivers or {}):
            found.setdefault(driver, []).append(key)
    return found


def _let_go(key: ClaimKey, pod: PodUID, problems: Sequence[Problem], desk: Desk) -> None:
    if text := text_for(key, problems):
        desk.progress.note(key, ClaimState.FAILED, text)
        return
    desk.book.unrefer(key, pod)
    if desk.book.get(key) is None:
        desk.progress.forget(key)


async def _call(batches: Batches, desk: Desk) -> list[Problem]:
    async def ask(name: DriverName, batch: list[ClaimKey]) -> list[Problem]:
        references = {key: desk.reference(key, name) for key in batch}
        if problem := desk.unusable(name):
            return [Problem(name, key, problem) for key in batch]
        for key in batch:
            desk.book.doubt(key, name)
        try:
            found = await desk.drivers.pick(name).unprepare(list(references.values()))
        except PluginError as e:
            return [Problem(name, key, e.message) for key in batch]
        problems = []
        for key, reference in references.items():
            if (failed := found[reference.uid]) is not None:
                problems.append(Problem(name, key, failed.message))
            else:
                desk.book.forget_driver(key, name)
                log.info("claim unprepared", extra=facts(claim=str(key), driver=name))
        return problems

    return await at_once(batches, ask)
