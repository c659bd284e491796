"""Everything that can happen to a claim manager, in any order: pods that come, go, and vanish, several at once and
interrupted anywhere; drivers that fail in every way; a full disk; claims made anew or given to other drivers; crashes
before and after each write and in the middle of each call; boots of the machine.

Whatever happens: what a driver is asked to prepare is in the file before; nothing is unprepared that a pod uses which
was told that it may run; that pod knows its CDI devices and finds them prepared, also after a crash. In the end, when
all faults are over, every pod can start, and when the pods are gone so is everything that was prepared.
"""

import asyncio
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import count, cycle
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import hypothesis.strategies as st
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from devlet.errors import DevletError, NotPrepared, PluginRefused, PluginUnavailable, Unavailable
from devlet.kit.parts import running
from devlet.node.claims.manager import CHECKPOINT, ClaimManager
from devlet.node.claims.records import ClaimKey
from devlet.objects.identifiers import ClaimUID, DriverName, PodUID
from devlet.objects.types.claim import PreparedDevice, ResourceClaim
from devlet.objects.types.pod import Pod
from devlet.plugins.dra import ClaimProblem, ClaimRef, Service
from devlet.state import claim_checkpoint
from devlet.state.checkpoint_file import CheckpointFile
from devlet.state.claim_entry import ClaimEntry
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import deadline, until
from tests.support.claim_specimens import claim, device, key, pod
from tests.support.scripted_drivers import Claims

ROUNDS = int(os.environ.get("DEVLET_CRASH_ROUNDS", "0"))
DRIVERS = [DriverName(f"{name}.example.com") for name in ("gpu", "nic", "tpu")]
CLAIMS = ["c0", "c1", "c2", "c3"]
RESOURCE = "vendor.com/gpu"
POINTS = ["", "", "", "read", "save", "lock", "call"]  # at which a prepare is cancelled; mostly not at all
FAULTS = ["", "", "refuse", "refuse late", "vanish late", "half", "skip", "nonsense"]
FAULTS += ["stuck", "stuck", "gone", "not connected", *CLAIMS]  # a claim: that one fails
WORK = ["prepare", "prepare", "prepare", "end", "end", "", "force delete"]
TROUBLE = ["", "", "", "", "crash before the work", "crash after the work", "full before the work"]
TURNS = 8  # of the loop: enough for all others to come as far as they can

SOME_DRIVERS = st.lists(st.sampled_from(DRIVERS), unique=True, max_size=3)
PODS = st.tuples(
    st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=3),  # its claims
    st.sampled_from([None, None, *CLAIMS]),  # that of its extended resources
    st.sampled_from([True, True, True, True, False]),  # whether they are reserved for it
)


class Step(NamedTuple):
    """What is done at once. It does not depend on what there is, which depends on when threads get their turn."""

    pods: list[tuple[str, str]]  # for each what to do, and where to give up; from the beginning again if there are more
    reconciles: int
    trouble: str


STEPS = st.builds(
    Step,
    st.lists(st.tuples(st.sampled_from(WORK), st.sampled_from(POINTS)), min_size=7, max_size=7),
    st.sampled_from([0, 0, 0, 1, 2]),
    st.sampled_from(TROUBLE),
)

Asked = tuple[str, DriverName]  # the UID of a claim, and one of its drivers


class Crash(Exception):
    """The process ends here: it writes and calls nothing any more."""


class Life:
    """Of one manager, from its start to its end or crash, and what is to happen to it."""

    def __init__(self) -> None:
        self.dead = False
        self.at: dict[str, list[Callable[[], None]]] = {}  # what to do at the next point of that name

    def reach(self, point: str) -> None:
        for act in self.at.pop(point, []):
            act()

    def die(self) -> None:
        self.dead = True


class FragileFile(CheckpointFile):
    def __init__(self, path: Path, life: Life) -> None:
        super().__init__(path)
        self.life = life
        self.loop = asyncio.get_running_loop()
        self.full = False
        self.behind = False  # the last write failed
        self.crash = ""  # before or after the next write

    def write(self, content: bytes) -> None:
        self._in_loop(lambda: self.life.reach("save"))
        if self.crash == "before":
            self.life.die()
        if self.life.dead:
            raise Crash
        if self.full:
            self.behind = True
            raise Unavailable(f"{self.path} cannot be written: No space left on device")
        super().write(content)
        self.behind = False
        if self.crash == "after":
            self.life.die()
            raise Crash

    def fill(self) -> None:
        self.full = True

    def _in_loop(self, act: Callable[[], None]) -> None:
        """Writes are done in a thread."""
        done = threading.Event()
        self.loop.call_soon_threadsafe(act)
        self.loop.call_soon_threadsafe(done.set)
        done.wait(60)

    def entries(self) -> dict[ClaimKey, ClaimEntry]:
        blob = self.path.read_bytes()
        return {key(entry.name): entry for entry in claim_checkpoint.decode(blob).claims or ()}


class Driver:
    """A driver with its own book, as it outlives whoever calls it."""

    def __init__(self, name: DriverName, world: "Machine") -> None:
        self.name = name
        self.service = Service.V1
        self.world = world
        self.prepared: dict[str, tuple[PreparedDevice, ...]] = {}
        self.asked: set[str] = set()  # to prepare, and not unprepared since
        self.is_there = True
        self.is_connected = True
        self.fault = ""
        self.turns = 0  # that each call takes

    async def prepare(self, claims: Sequence[ClaimRef], life: Life) -> dict[ClaimUID, Any]:
        self.world.check_intent(self.name, claims)
        self.asked |= {each.uid for each in claims}
        return await self.serve(claims, life, self._prepare)

    async def unprepare(self, claims: Sequence[ClaimRef], life: Life) -> dict[ClaimUID, Any]:
        self.world.check_unused(self.name, claims)
        return await self.serve(claims, life, self._unprepare)

    async def serve(self, claims: Sequence[ClaimRef], life: Life, do: Callable[[ClaimRef], Any]) -> dict[ClaimUID, Any]:
        for _ in range(TURNS):
            await checkpoint()
        for point in ("call", "lock"):
            life.reach(point)
        for _ in range(self.turns):
            await checkpoint()
        life.reach("before the work")
        stuck = self.fault == "stuck" and do == self._unprepare  # it prepares, but does not let go
        if life.dead or stuck or self.fault == "refuse" or not self.is_there:
            raise PluginRefused(self.name, "told to fail")
        found = {each.uid: self.answer(each, do) for each in (claims[:1] if self.fault == "half" else claims)}
        life.reach("after the work")
        if self.fault in ("refuse late", "half"):
            raise PluginRefused(self.name, "told to fail")
        if self.fault == "vanish late":
            self.is_there = False
            raise PluginUnavailable(self.name, "connection lost")
        return found

    def answer(self, each: ClaimRef, do: Callable[[ClaimRef], Any]) -> Any:
        if self.fault == each.name:
            return ClaimProblem("told to fail")
        done = do(each)
        if self.fault == "skip":
            return ClaimProblem("left out of the answer")
        return (device("d", "nonsense"),) if done is not None and self.fault == "nonsense" else done

    def _prepare(self, each: ClaimRef) -> tuple[PreparedDevice, ...]:
        made = (device(f"dev-{each.name}", f"{self.name}/c={each.uid}"),)
        return self.prepared.setdefault(each.uid, made)

    def _unprepare(self, each: ClaimRef) -> None:
        self.prepared.pop(each.uid, None)
        self.asked.discard(each.uid)


Call = Callable[[Sequence[ClaimRef], Life], Awaitable[dict[ClaimUID, Any]]]


class Called:
    """A driver as one life of the manager has it. The dead do not call."""

    def __init__(self, driver: Driver, life: Life) -> None:
        self._driver = driver
        self._life = life
        self.service = driver.service

    async def prepare(self, claims: Sequence[ClaimRef]) -> dict[ClaimUID, Any]:
        return await self._ask(self._driver.prepare, claims)

    async def unprepare(self, claims: Sequence[ClaimRef]) -> dict[ClaimUID, Any]:
        return await self._ask(self._driver.unprepare, claims)

    async def _ask(self, call: Call, claims: Sequence[ClaimRef]) -> dict[ClaimUID, Any]:
        if self._life.dead:
            raise PluginUnavailable(self._driver.name, "nobody calls any more")
        answer = await call(claims, self._life)
        if self._life.dead:
            raise PluginUnavailable(self._driver.name, "nobody hears the answer")
        return answer


class Registry:
    """The drivers, as one life of the manager has them. What changes is told by asking again."""

    version = 1

    def __init__(self, drivers: dict[DriverName, Driver], life: Life) -> None:
        self._drivers = drivers
        self._life = life

    def pick(self, name: DriverName) -> Called:
        if not self._drivers[name].is_there:
            raise PluginUnavailable(name, f"DRA driver {name} is not registered")
        return Called(self._drivers[name], self._life)

    def is_usable(self, name: DriverName) -> bool:
        return self._drivers[name].is_there and self._drivers[name].is_connected

    async def changed(self, since: int) -> int:
        await anyio.sleep_forever()
        return since


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.directory = Path(tempfile.mkdtemp(prefix="dv"))
        self.drivers = {name: Driver(name, self) for name in DRIVERS}
        self.claims = Claims()
        self.numbers = count(1)
        self.alive: dict[PodUID, Pod] = {}
        self.unreserved: set[PodUID] = set()
        self.ending: set[PodUID] = set()  # those could not be unprepared yet
        self.promised: dict[PodUID, set[Asked]] = {}  # pods that may run, and what they use
        self.do(self.start())

    def teardown(self) -> None:
        try:
            self.do(self.everything_is_well_in_the_end())
        finally:
            self.do(self.end())
            self.runner.close()
            shutil.rmtree(self.directory)

    def do(self, work: Any) -> Any:
        return self.runner.run(_bounded(work))

    # The manager's life

    async def start(self) -> None:
        """In a task of its own, which may die of a crash."""
        self.life = Life()
        self.file = FragileFile(self.directory / CHECKPOINT, self.life)
        drivers = Registry(self.drivers, self.life)
        self.clock = FakeClock()
        self.manager = ClaimManager(self.directory, drivers, self.read, self.clock, file=self.file)
        self.stop, ready = anyio.Event(), anyio.Event()
        self.task = asyncio.get_running_loop().create_task(self.live(ready))
        await ready.wait()

    async def live(self, ready: anyio.Event) -> None:
        try:
            async with running(self.manager.run):
                ready.set()
                await self.stop.wait()
        except* Crash:
            pass

    async def end(self) -> None:
        self.stop.set()
        await self.task

    async def back_after_a_crash(self) -> None:
        await self.quiet()
        self.life.at.clear()
        if self.life.dead:
            await self.end()
            await self.start()

    async def quiet(self) -> None:
        """Until nothing is being written, and nothing will be without being asked for."""
        saver = self.manager._saver
        while not self.task.done() and (saver._asked.is_set() or (saver._durable is None and not self.file.behind)):
            await checkpoint()

    async def restart(self) -> None:
        """In order. What a full disk did not take is lost all the same."""
        await self.end()
        await self.start()

    async def boot(self) -> None:
        """Of the machine: no container runs any more, and drivers forget what they prepared."""
        self.life.die()
        self.promised.clear()
        for driver in self.drivers.values():
            driver.prepared.clear()
        await self.back_after_a_crash()

    @rule(what=st.sampled_from(["full", "full", "room", "crash before", "crash after", "restart", "boot"]))
    def disk_or_process_fails(self, what: str) -> None:
        if what in ("full", "room"):
            self.file.full = what == "full"
        elif what.startswith("crash"):
            self.file.crash = what.removeprefix("crash ")  # the next write
        else:
            self.do(self.boot() if what == "boot" else self.restart())

    # Drivers

    @rule(name=st.sampled_from(DRIVERS), fault=st.sampled_from(FAULTS), turns=st.integers(0, 3))
    def driver_behaves(self, name: DriverName, fault: str, turns: int) -> None:
        driver = self.drivers[name]
        driver.is_there, driver.is_connected = fault != "gone", fault != "not connected"
        driver.fault, driver.turns = fault, turns

    @rule()
    def drivers_recover(self) -> None:
        for name in DRIVERS:
            self.driver_behaves(name, "", 0)

    # Claims

    def make_claim(self, name: str, drivers: Sequence[DriverName], uid: str = "") -> None:
        uid = uid or f"{name}-{next(self.numbers)}"
        pods = [each for each in self.users(name) if each not in self.unreserved]
        self.claims.put(claim(name, uid, drivers=drivers, pods=pods))

    def users(self, name: str) -> Iterator[PodUID]:
        """As the cluster sees them."""
        return (uid for uid, each in self.alive.items() if key(name) in set(self.keys(each)))

    def keys(self, each: Pod) -> Iterator[ClaimKey]:
        for entry in each.spec.resource_claims:
            yield key(entry.resource_claim_name or "")
        if status := each.status.extended_resource_claim_status:
            yield key(status.resource_claim_name)

    async def read(self, wanted: ClaimKey) -> ResourceClaim:
        self.life.reach("read")
        return await self.claims.read(wanted)

    @initialize(drivers=st.lists(SOME_DRIVERS, min_size=len(CLAIMS), max_size=len(CLAIMS)))
    def make_claims(self, drivers: list[list[DriverName]]) -> None:
        for name, its in zip(CLAIMS, drivers, strict=True):
            self.make_claim(name, its)

    @rule(name=st.sampled_from(CLAIMS), drivers=SOME_DRIVERS, anew=st.booleans())
    def claim_changes(self, name: str, drivers: list[DriverName], anew: bool) -> None:
        """It is made anew, or, if no pod runs with it, given to other drivers."""
        if anew or not self.promised.keys() & set(self.users(name)):
            self.make_claim(name, drivers, "" if anew else self.claims.objects[key(name)].uid)

    # Pods

    @rule(pods=st.lists(PODS, max_size=4), step=STEPS)
    def work_on_pods(self, pods: list[tuple[list[str], str | None, bool]], step: "Step") -> None:
        """New pods come, and with all others they start and end at once. Some starts are given up in the middle, or
        everything is."""
        for names, extended, reserved in pods:
            self.create(names, extended, reserved)
        self.do(self.work(step))

    def create(self, names: list[str], extended: str | None, reserved: bool) -> None:
        """A name may be there twice: the pod has the claim under two names."""
        uid = PodUID(f"pod-{next(self.numbers)}")
        self.alive[uid] = _pod(uid, names, extended)
        if not reserved:
            self.unreserved.add(uid)
        for one in {*names, *([extended] if extended else [])}:
            before = self.claims.objects[key(one)]
            self.make_claim(one, list(dict.fromkeys(each.driver for each in before.results)), before.uid)

    async def work(self, step: "Step") -> None:
        await self.back_after_a_crash()  # of a write that nobody waited for
        plan = dict(zip(sorted(self.alive), cycle(step.pods)))
        if step.trouble:
            what, _, when = step.trouble.partition(" ")
            self.life.at[when] = [self.life.die if what == "crash" else self.file.fill]
        for uid in [uid for uid, (what, _) in plan.items() if what == "force delete"]:
            self.forget(uid)
        async with anyio.create_task_group() as tasks:
            for _ in range(step.reconciles):
                tasks.start_soon(self.manager.reconcile, frozenset(self.alive))
            for uid in self.alive:
                what, point = plan[uid]
                if what == "end" or uid in self.ending:
                    tasks.start_soon(self.end_pod, uid)
                elif what == "prepare":
                    tasks.start_soon(self.prepare, uid, point)
        await self.back_after_a_crash()

    async def prepare(self, uid: PodUID, point: str) -> None:
        each, life = self.alive[uid], self.life
        with anyio.CancelScope() as scope:
            if point:
                life.at.setdefault(point, []).append(scope.cancel)
            try:
                await self.manager.prepare(each)
            except (NotPrepared, Unavailable):
                return
            if not life.dead:
                self.promise(uid, each)

    def promise(self, uid: PodUID, each: Pod) -> None:
        """It may run. What it uses is in the file by now, with all that its containers need to start again."""
        on_disk = self.file.entries()
        found: set[Asked] = set()
        for one in self.keys(each):
            entry = on_disk[one]
            assert uid in (entry.pods or ())
            assert None not in (entry.drivers or {}).values(), f"{uid} may run, but the file does not say with what"
            found |= {(entry.uid, DriverName(name)) for name in entry.drivers or {}}
        assert found == {(self.uid(one), result.driver) for one in self.keys(each) for result in self.results(one)}
        assert self.promised.setdefault(uid, found) == found

    def uid(self, one: ClaimKey) -> str:
        return self.claims.objects[one].uid

    def results(self, one: ClaimKey) -> Sequence[Any]:
        return self.claims.objects[one].results

    async def end_pod(self, uid: PodUID) -> None:
        self.ending.add(uid)
        self.promised.pop(uid, None)
        life = self.life
        try:
            await self.manager.unprepare(uid)
        except (NotPrepared, Unavailable):
            return
        if not life.dead:
            assert not self.manager.holds(uid)
            self.forget(uid)

    def forget(self, uid: PodUID) -> None:
        del self.alive[uid]
        self.promised.pop(uid, None)
        self.ending.discard(uid)

    # What holds in the middle of each call

    def check_intent(self, driver: DriverName, claims: Iterable[ClaimRef]) -> None:
        on_disk = self.on_disk()
        for each in claims:
            assert (each.uid, driver) in on_disk, f"{driver} is asked to prepare {each.name}, which is not in the file"

    def check_unused(self, driver: DriverName, claims: Iterable[ClaimRef]) -> None:
        for each in claims:
            users = [pod for pod, uses in self.promised.items() if (each.uid, driver) in uses]
            assert not users, f"{driver} is asked to unprepare {each.name}, which {users} use"

    def on_disk(self) -> set[Asked]:
        return {(e.uid, DriverName(name)) for e in self.file.entries().values() for name in e.drivers or {}}

    async def read_entries(self) -> dict[ClaimKey, ClaimEntry]:
        return self.file.entries()

    # What holds after each step

    @invariant()
    def what_a_driver_may_have_prepared_is_in_the_file(self) -> None:
        asked = {
            (uid, driver.name) for driver in self.drivers.values() for uid in driver.asked | driver.prepared.keys()
        }
        assert asked <= self.on_disk()

    @invariant()
    def a_pod_that_may_run_has_its_devices(self) -> None:
        for uid, uses in self.promised.items():
            each = self.alive[uid]
            assert all(claim_uid in self.drivers[driver].prepared for claim_uid, driver in uses)
            assert self.manager.is_prepared(each) and self.manager.holds(uid)
            devices = self.manager.cdi_devices(each, each.containers[0])
            assert set(devices) == {f"{driver}/c={claim_uid}" for claim_uid, driver in uses}
            assert len(devices) == len(uses)

    @invariant()
    def the_disk_says_the_same(self) -> None:
        """Without being asked, unless a write has failed or a crash waits for the next one."""

        if not self.file.behind and not self.file.crash:
            assert self.file.entries() == dict(self.manager._cache)

    # The end

    async def everything_is_well_in_the_end(self) -> None:
        await self.back_after_a_crash()
        self.file.full, self.file.crash = False, ""
        self.drivers_recover()
        await self.manager.reconcile(frozenset(self.alive))
        for uid in self.ending.copy():
            await self.end_pod(uid)
        for uid, each in self.alive.items():
            await self.starts_or_is_in_its_own_way(uid, each)
        for uid in list(self.alive):
            await self.end_pod(uid)
        assert not self.alive and self.manager.records() == []
        await self.clock.advance(60)  # a write that failed is repeated
        await until(self.read_entries, lambda entries: not entries)
        for driver in self.drivers.values():
            assert driver.prepared == {} and driver.asked == set()

    async def starts_or_is_in_its_own_way(self, uid: PodUID, each: Pod) -> None:
        """A claim that was deleted, or given to other drivers, while a pod referred to it stands in the way until that
        pod ends: of its own pods, and if a crash kept the driver's answer from the file, of all that want a device of
        that driver."""
        try:
            await self.manager.prepare(each)
        except DevletError as e:
            assert any(text in str(e) for text in ("old ResourceClaim with same name", "was reallocated while")) or (
                (uid in self.unreserved and "is not reserved" in str(e)) or self.is_for_an_old_claim(str(e))
            )
        else:
            self.promise(uid, each)

    def is_for_an_old_claim(self, text: str) -> bool:
        """Nobody can say any more which device the driver was asked to prepare for it."""
        if not (found := re.search(r"is still prepared for ResourceClaim default/(\S+);", text)):
            return False
        old = self.file.entries()[key(found[1])]
        now = {result.driver for result in self.results(key(found[1]))}
        lost = {name for name, devices in (old.drivers or {}).items() if devices is None}
        return bool(lost) and (old.uid != self.uid(key(found[1])) or not lost <= now)


def _pod(uid: str, names: Sequence[str], extended: str | None) -> Pod:
    claims = {f"entry-{number}": name for number, name in enumerate(names)}
    if extended is None:
        return pod(uid, claims)
    mapping = {"containerName": "main", "resourceName": RESOURCE, "requestName": "req"}
    status = {"extendedResourceClaimStatus": {"resourceClaimName": extended, "requestMappings": [mapping]}}
    return pod(uid, claims, status=status, resources={"requests": {RESOURCE: "1"}})


async def _bounded(work: Any) -> Any:
    with deadline():
        return await work


Machine.TestCase.settings = settings(
    max_examples=settings().max_examples * 3 // 5 + ROUNDS,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
test_claims_are_never_lost_or_taken_from_their_pods = pytest.mark.crash(
    pytest.mark.timeout(900 + 10 * ROUNDS)(Machine.TestCase)
)
