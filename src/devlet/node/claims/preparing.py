"""Prepare the claims of one pod: check, write down, call the drivers, write down what they answered.

Until something is written down a refusal leaves no trace, so the pod can be deleted even if its driver never comes. A
claim is given back as soon as all of its drivers have answered, so that others need not wait for the slowest one."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import anyio

from devlet.errors import DevletError, NotFound, NotPrepared, PluginError
from devlet.kit.facts import facts
from devlet.kit.key_locks import Held
from devlet.node.claims import answers, checks, overlaps, wanted
from devlet.node.claims.checks import Usable
from devlet.node.claims.desk import Batches, Desk, Driver, at_once
from devlet.node.claims.overlaps import Overlap
from devlet.node.claims.problems import Problem, raise_for, text_for
from devlet.node.claims.records import ClaimKey, ClaimState
from devlet.node.claims.unpreparing import let_go
from devlet.node.claims.wanted import Wanted
from devlet.objects.identifiers import DriverName, PodUID
from devlet.objects.types.claim import PreparedDevice
from devlet.objects.types.pod import Pod
from devlet.plugins.dra import ClaimProblem

__all__ = ["prepare"]

log = logging.getLogger(__name__)

Answer = tuple[PreparedDevice, ...] | ClaimProblem
Claims = Mapping[ClaimKey, Usable]


async def prepare(pod: Pod, desk: Desk) -> None:
    """As `ClaimManager.prepare`."""
    claims = wanted.wanted(pod, extended=desk.settings.extended)
    if not claims:
        return
    async with desk.locks.hold(one.key for one in claims) as held:
        usable = await _usable(pod, claims, desk)
        await _learn(usable, desk)
        todo = _todo(usable, desk)
        _refuse_overlaps(usable, desk)  # nothing waits between this and what is written down
        saved = await _write_down(pod.uid, usable, desk)
        with anyio.CancelScope(shield=True):
            problems = await _Calls(usable, held, desk).prepare(todo)
            if todo or not saved:  # what others were answered for these claims may not be in the file yet
                await desk.saver.save()
    raise_for(problems)


async def _usable(pod: Pod, claims: Sequence[Wanted], desk: Desk) -> dict[ClaimKey, Usable]:
    """The claims as the cluster has them now. What is wrong with all of them is told at once."""
    found: dict[ClaimKey, Usable] = {}
    problems: list[NotPrepared] = []
    limiter = anyio.CapacityLimiter(desk.settings.reads_at_once)

    async def look(one: Wanted) -> None:
        try:
            async with limiter:
                claim = await desk.read(one.key)
            found[one.key] = checks.check(claim, one, pod, workloads=desk.settings.workloads)
            if not desk.book.is_prepared(one.key, pod.uid) and (reason := desk.misplaced(claim)):
                raise NotPrepared(reason)
            desk.book.correct(one.key, claim.uid, found[one.key].results)
        except DevletError as e:
            problems.append(_about(one.key, e))

    if len(claims) == 1:
        await look(claims[0])
    else:
        async with anyio.create_task_group() as tasks:
            for one in claims:
                tasks.start_soon(look, one)
    may_run = all(desk.book.is_prepared(one.key, pod.uid) for one in claims)
    for key, claim in found.items():
        if not may_run:
            await _give_way(key, claim, pod.uid, desk)
        if standing := _standing(key, claim, desk):
            problems.append(NotPrepared(standing))
    if problems:
        raise NotPrepared("; ".join(sorted(set(map(str, problems))))) from problems[0]
    return {one.key: found[one.key] for one in claims}


def _about(key: ClaimKey, error: DevletError) -> NotPrepared:
    if isinstance(error, NotPrepared):
        return error
    verb = "was not found" if isinstance(error, NotFound) else "could not be fetched"
    return NotPrepared(f"ResourceClaim {key.name} {verb}: {error}")


async def _give_way(key: ClaimKey, claim: Usable, pod: PodUID, desk: Desk) -> None:
    """What an earlier try of this pod has left of another claim of that name, or of other devices. Nothing of the pod
    has started, so it does not use them; other pods may."""
    entry = desk.book.get(key)
    if entry is None or pod not in (entry.pods or ()) or not (standing := _standing(key, claim, desk)):
        return
    if problems := await let_go([key], pod, desk):
        raise NotPrepared(f"{standing}: {text_for(key, problems)}")


def _standing(key: ClaimKey, claim: Usable, desk: Desk) -> str:
    """What stands in the way: under this name another claim is prepared, or this one with other devices."""
    if (entry := desk.book.get(key)) is None:
        return ""
    if entry.uid != claim.uid:
        return f"old ResourceClaim with same name {key.name} and different UID {entry.uid} still exists"
    others = entry.drivers.keys() - claim.results.keys() if entry.drivers else set()
    if others or desk.book.is_outdated(key, claim.results):
        pods = ", ".join(sorted(entry.pods or ()))
        return f"ResourceClaim {key.name} got other devices while it is prepared with the ones before, for pods {pods}"
    return ""


def _todo(claims: Claims, desk: Desk) -> Batches:
    """Who has to be called. A driver that cannot be is an error before anything is written down."""
    todo: Batches = {}
    for key, claim in claims.items():
        for driver in claim.results:
            if not desk.book.is_confirmed(key, driver):
                todo.setdefault(driver, []).append(key)
    if problems := {name: problem for name in todo if (problem := desk.unusable(name))}:
        raise NotPrepared("; ".join(problems.values()), drivers=problems)
    return todo


async def _learn(claims: Claims, desk: Desk) -> None:
    """Find out what these and other claims hold since before a restart. A claim that was deleted, even if another has
    its name by now, may hold any device of its driver."""
    for key, mine in claims.items():
        if desk.book.get(key) is not None and not desk.book.knows_allocation(key):
            desk.book.allocate(key, mine.results)
    for key in overlaps.to_learn(claims, desk.book):
        try:
            claim = await desk.read(key)
        except DevletError:
            continue
        entry = desk.book.get(key)
        if entry is not None and entry.uid == claim.uid and claim.status.allocation is not None:
            desk.book.allocate(key, checks.results_of(claim))


def _refuse_overlaps(claims: Claims, desk: Desk) -> None:
    """A device that another claim on this node has is not prepared a second time."""
    if found := list(overlaps.overlaps(claims, desk.book)):
        texts = dict.fromkeys(_overlap(each, desk) for each in found)
        raise NotPrepared("; ".join(texts), contested=((str(key), device, str(other)) for key, device, other in found))


def _overlap(found: Overlap, desk: Desk) -> str:
    key, device, other = found
    what = f"ResourceClaim {key.name}: device {device} is still prepared for ResourceClaim {other}"
    if (entry := desk.book.get(other)) is None or not set(entry.pods or ()) <= desk.ending:
        return f"{what}; it is retried when that is unprepared"
    return (
        f"{what}, whose pod is gone but whose driver has not unprepared it. It is retried when that is done; to give"
        f" up on that, run `devlet claim release {other} --force`"
    )


async def _write_down(pod: PodUID, claims: Claims, desk: Desk) -> bool:
    """Whether there was anything to write."""
    before = {key: desk.book.get(key) for key in claims}
    new = [key for key, claim in claims.items() if desk.book.refer(key, claim.uid, claim.results, pod)]
    for key, claim in claims.items():
        desk.book.allocate(key, claim.results)
    if not new:
        return False
    try:
        await desk.saver.save()
    except BaseException:
        for key in new:
            desk.book.put_back(key, before[key])  # no driver was called for it
        desk.saver.save_soon()
        raise
    return True


class _Calls:
    """The calls for one pod."""

    def __init__(self, claims: Claims, held: Held[ClaimKey], desk: Desk) -> None:
        self._claims = claims
        self._held = held
        self._desk = desk
        self._left: Counter[ClaimKey] = Counter()  # drivers that have not answered yet
        self._problems: list[Problem] = []

    async def prepare(self, todo: Batches) -> list[Problem]:
        self._left.update(key for batch in todo.values() for key in batch)
        self._settle(self._claims.keys() - self._left.keys())
        for key in self._left:
            self._desk.progress.note(key, ClaimState.PREPARING)
        await at_once(todo, self._call)
        return self._problems

    async def _call(self, driver: DriverName, batch: list[ClaimKey]) -> list[Problem]:
        found = await self._ask(driver, batch)
        self._problems += found
        self._left.subtract(batch)
        self._settle(key for key in batch if not self._left[key])
        return found

    def _settle(self, claims: Iterable[ClaimKey]) -> None:
        """All of their drivers have answered."""
        for key in claims:
            text = text_for(key, self._problems)
            self._desk.progress.note(key, ClaimState.FAILED if text else ClaimState.PREPARED, text)
            self._held.release(key)

    async def _ask(self, name: DriverName, batch: list[ClaimKey]) -> list[Problem]:
        try:
            driver = self._desk.drivers.pick(name)
            found = await driver.prepare([self._desk.reference(key, name) for key in batch])
        except PluginError as e:
            return [Problem(name, key, e.message) for key in batch]
        problems = []
        for key in batch:
            claim = self._claims[key]
            answer = self._checked(found[claim.uid], driver, name, key)
            if isinstance(answer, ClaimProblem):
                problems.append(Problem(name, key, answer.message))
            else:
                self._desk.book.confirm(key, name, answer, claim.results[name])
                log.info("claim prepared", extra=facts(claim=str(key), driver=name, devices=len(answer)))
        return problems

    def _checked(self, answer: Answer, driver: Driver, name: DriverName, key: ClaimKey) -> Answer:
        if not isinstance(answer, ClaimProblem):
            answer = answers.checked(answer, name, self._claims[key], legacy=driver.service.is_legacy)
        if isinstance(answer, ClaimProblem):
            return answer
        foreign = overlaps.foreign_cdi(key, name, answer, self._desk.book)
        return ClaimProblem(foreign) if foreign else answer
