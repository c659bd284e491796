"""Prepare the claims of one pod: check them, save the references, call the drivers, save their answers.

A pod that is refused before the references are saved leaves no trace, so it can be deleted even if its driver never
appears. The lock of a claim is released as soon as all of its drivers have answered, so that other pods do not wait for
the slowest claim.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import anyio

from devlet.errors import DevletError, NotFound, NotPrepared, PluginError
from devlet.kit.facts import facts
from devlet.kit.key_locks import Held
from devlet.node.claims import checks, overlaps, pod_claims
from devlet.node.claims.checks import UsableClaim
from devlet.node.claims.overlaps import Overlap
from devlet.node.claims.pod_claims import PodClaim
from devlet.node.claims.prepare_context import (
    Batches,
    Driver,
    PrepareContext,
    Problem,
    call_drivers,
    problem_text,
    raise_for,
)
from devlet.node.claims.records import ClaimKey, ClaimState
from devlet.node.claims.unpreparing import unprepare_claims
from devlet.objects.identifiers import DriverName, PodUID
from devlet.objects.types.claim import PreparedDevice
from devlet.objects.types.pod import Pod
from devlet.plugins.dra import ClaimProblem

__all__ = ["prepare"]

log = logging.getLogger(__name__)

Answer = tuple[PreparedDevice, ...] | ClaimProblem
Claims = Mapping[ClaimKey, UsableClaim]


async def prepare(pod: Pod, context: PrepareContext) -> None:
    """See `ClaimManager.prepare`."""
    claims = pod_claims.of_pod(pod, extended=context.settings.extended)
    if not claims:
        return
    async with context.locks.hold(one.key for one in claims) as held:
        usable = await _usable_claims(pod, claims, context)
        await _restore_allocations(usable, context)
        todo = _pending_calls(usable, context)
        _refuse_overlaps(usable, context)  # no await between this and the references
        saved = await _save_references(pod.uid, usable, context)
        with anyio.CancelScope(shield=True):
            problems = await _PrepareCalls(usable, held, context).prepare(todo)
            if todo or not saved:  # answers that other pods got for these claims may not be in the file yet
                await context.saver.save()
    raise_for(problems)


async def _usable_claims(pod: Pod, claims: Sequence[PodClaim], context: PrepareContext) -> dict[ClaimKey, UsableClaim]:
    """Read the claims from the cluster and check them. One error reports the problems of all claims."""
    found: dict[ClaimKey, UsableClaim] = {}
    problems: list[NotPrepared] = []
    limiter = anyio.CapacityLimiter(context.settings.reads_at_once)

    async def read(one: PodClaim) -> None:
        try:
            async with limiter:
                claim = await context.read(one.key)
            found[one.key] = checks.check(claim, one, pod, workloads=context.settings.workloads)
            if not context.cache.is_prepared(one.key, pod.uid) and (reason := context.misplaced(claim)):
                raise NotPrepared(reason)
            context.cache.correct(one.key, claim.uid, found[one.key].results)
        except DevletError as e:
            problems.append(_about(one.key, e))

    if len(claims) == 1:
        await read(claims[0])
    else:
        async with anyio.create_task_group() as tasks:
            for one in claims:
                tasks.start_soon(read, one)
    may_run = all(context.cache.is_prepared(one.key, pod.uid) for one in claims)
    for key, claim in found.items():
        if not may_run:
            await _unprepare_stale(key, claim, pod.uid, context)
        if reason := _stale(key, claim, context):
            problems.append(NotPrepared(reason))
    if problems:
        raise NotPrepared("; ".join(sorted(set(map(str, problems))))) from problems[0]
    return {one.key: found[one.key] for one in claims}


def _about(key: ClaimKey, error: DevletError) -> NotPrepared:
    if isinstance(error, NotPrepared):
        return error
    verb = "was not found" if isinstance(error, NotFound) else "could not be fetched"
    return NotPrepared(f"ResourceClaim {key.name} {verb}: {error}")


async def _unprepare_stale(key: ClaimKey, claim: UsableClaim, pod: PodUID, context: PrepareContext) -> None:
    """Unprepare what an earlier attempt of this pod has prepared: another claim of this name, or this one with other
    devices. No container of the pod has started, so the pod does not use them; other pods may."""
    entry = context.cache.get(key)
    if entry is None or pod not in (entry.pods or ()) or not (reason := _stale(key, claim, context)):
        return
    if problems := await unprepare_claims([key], pod, context):
        raise NotPrepared(f"{reason}: {problem_text(key, problems)}")


def _stale(key: ClaimKey, claim: UsableClaim, context: PrepareContext) -> str:
    """Return why the claim cannot be prepared yet: another one of this name is prepared, or this one with other
    devices. Return an empty string if neither is the case."""
    if (entry := context.cache.get(key)) is None:
        return ""
    if entry.uid != claim.uid:
        return f"old ResourceClaim with same name {key.name} and different UID {entry.uid} still exists"
    others = entry.drivers.keys() - claim.results.keys() if entry.drivers else set()
    if others or context.cache.is_outdated(key, claim.results):
        pods = ", ".join(sorted(entry.pods or ()))
        return (
            f"ResourceClaim {key.name} was reallocated while still prepared with its previous devices, for pods {pods}"
        )
    return ""


def _pending_calls(claims: Claims, context: PrepareContext) -> Batches:
    """Return the calls to make. Raise NotPrepared, before anything is saved, if a driver cannot be called."""
    todo: Batches = {}
    for key, claim in claims.items():
        for driver in claim.results:
            if not context.cache.is_confirmed(key, driver):
                todo.setdefault(driver, []).append(key)
    if problems := {name: problem for name in todo if (problem := context.unusable(name))}:
        raise NotPrepared("; ".join(problems.values()), drivers=problems)
    return todo


async def _restore_allocations(claims: Claims, context: PrepareContext) -> None:
    """Find out which devices these claims, and others that may overlap, have had since before a restart. A claim that
    was deleted, even if another one has its name by now, may have any device of its driver."""
    for key, mine in claims.items():
        if context.cache.get(key) is not None and not context.cache.has_allocation(key):
            context.cache.allocate(key, mine.results)
    for key in overlaps.unknown_allocations(claims, context.cache):
        try:
            claim = await context.read(key)
        except DevletError:
            continue
        entry = context.cache.get(key)
        if entry is not None and entry.uid == claim.uid and claim.status.allocation is not None:
            context.cache.allocate(key, checks.results_of(claim))


def _refuse_overlaps(claims: Claims, context: PrepareContext) -> None:
    """Raise NotPrepared if another claim on this node has a device of these claims."""
    if found := list(overlaps.overlaps(claims, context.cache)):
        texts = dict.fromkeys(_overlap(each, context) for each in found)
        raise NotPrepared("; ".join(texts), contested=((str(key), device, str(other)) for key, device, other in found))


def _overlap(found: Overlap, context: PrepareContext) -> str:
    key, device, other = found
    what = f"ResourceClaim {key.name}: device {device} is still prepared for ResourceClaim {other}"
    if (entry := context.cache.get(other)) is None or not set(entry.pods or ()) <= context.ending:
        return f"{what}; it is retried when that is unprepared"
    return (
        f"{what}, whose pod is gone but whose driver has not unprepared it. It is retried when that is done; to give"
        f" up on that, run `devlet claim release {other} --force`"
    )


async def _save_references(pod: PodUID, claims: Claims, context: PrepareContext) -> bool:
    """Record that the pod uses the claims. Return True if that was new and has been saved."""
    before = {key: context.cache.get(key) for key in claims}
    new = [key for key, claim in claims.items() if context.cache.add_reference(key, claim.uid, claim.results, pod)]
    for key, claim in claims.items():
        context.cache.allocate(key, claim.results)
    if not new:
        return False
    try:
        await context.saver.save()
    except BaseException:
        for key in new:
            context.cache.roll_back(key, before[key])  # no driver has been called for it
        context.saver.save_soon()
        raise
    return True


class _PrepareCalls:
    """The calls to drivers for one pod."""

    def __init__(self, claims: Claims, held: Held[ClaimKey], context: PrepareContext) -> None:
        self._claims = claims
        self._held = held
        self._context = context
        self._left: Counter[ClaimKey] = Counter()  # drivers that have not answered yet
        self._problems: list[Problem] = []

    async def prepare(self, todo: Batches) -> list[Problem]:
        self._left.update(key for batch in todo.values() for key in batch)
        self._finish(self._claims.keys() - self._left.keys())
        for key in self._left:
            self._context.progress.note(key, ClaimState.PREPARING)
        await call_drivers(todo, self._call)
        return self._problems

    async def _call(self, driver: DriverName, batch: list[ClaimKey]) -> list[Problem]:
        found = await self._ask(driver, batch)
        self._problems += found
        self._left.subtract(batch)
        self._finish(key for key in batch if not self._left[key])
        return found

    def _finish(self, claims: Iterable[ClaimKey]) -> None:
        """Record the result of claims whose drivers have all answered, and release their locks."""
        for key in claims:
            text = problem_text(key, self._problems)
            self._context.progress.note(key, ClaimState.FAILED if text else ClaimState.PREPARED, text)
            self._held.release(key)

    async def _ask(self, name: DriverName, batch: list[ClaimKey]) -> list[Problem]:
        try:
            driver = self._context.drivers.pick(name)
            found = await driver.prepare([self._context.reference(key, name) for key in batch])
        except PluginError as e:
            return [Problem(name, key, e.message) for key in batch]
        problems = []
        for key in batch:
            claim = self._claims[key]
            answer = self._checked(found[claim.uid], driver, name, key)
            if isinstance(answer, ClaimProblem):
                problems.append(Problem(name, key, answer.message))
            else:
                self._context.cache.confirm(key, name, answer, claim.results[name])
                log.info("claim prepared", extra=facts(claim=str(key), driver=name, devices=len(answer)))
        return problems

    def _checked(self, answer: Answer, driver: Driver, name: DriverName, key: ClaimKey) -> Answer:
        if not isinstance(answer, ClaimProblem):
            answer = checks.check_answer(answer, name, self._claims[key], legacy=driver.service.is_legacy)
        if isinstance(answer, ClaimProblem):
            return answer
        overlap = overlaps.cdi_overlap(key, name, answer, self._context.cache)
        return ClaimProblem(overlap) if overlap else answer
